"""Studies how well lanes train: held-out loss compared with one lane alone and all-reduce, for many exchange
rules.

`make lanes-study` runs the missing trainings and writes docs/lanes.json and docs/lanes.md, which lists those
that remain. With `--page` it only writes the page. Lanes run their programs (`protocol.lanes`). Other exchange
rules, for comparison, are plain torch.
"""
