"""Studies how well lanes train: compares their held-out loss with that of a single lane and that of
all-reduce.

`make lanes-study` trains the runs of the study that docs/lanes.json lacks, and adds their results to it. It
then writes docs/lanes.md, which says how many runs remain. With `--page` it measures nothing, and only writes
the page and its figure. Runs with lanes use the lanes' programs (`protocol.lanes`). The other rules of
exchange, with which lanes are compared, are written in plain torch.
"""
