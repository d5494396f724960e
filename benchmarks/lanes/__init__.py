"""Studies how well lanes train: their held-out loss beside that of one lane alone and that of all-reduce.

`make lanes-study` runs the training runs that are missing and writes docs/lanes.json and docs/lanes.md,
which says how many remain. With `--page` it measures nothing, and only writes the page and its figure.
Lanes run their programs (`protocol.lanes`); the rules of exchange that they are compared with are plain
torch.
"""
