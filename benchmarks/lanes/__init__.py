"""Studies how well lanes train: compares their held-out loss with that of a single lane and that of
all-reduce.

`make lanes-study` runs the training runs that are missing and writes docs/lanes.json and docs/lanes.md, which
says how many runs remain. With `--page` it measures nothing, and only writes the page and its figure. Lanes
run their programs (`protocol.lanes`); the rules of exchange that they are compared with are plain torch.
"""
