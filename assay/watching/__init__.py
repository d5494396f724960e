"""`assay watch`: what happens to one task, in words, from its post to its end.

Pure: `words`, `waiting`, `happened`, `curve`. Edges: `following` reads the chain, `metrics` and `fetching` ask servers,
`untaken` asks what a solver would refuse, `printing` prints; `progress` says who is told. `command` is the loop.
"""
