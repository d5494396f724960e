"""`assay watch`: follows one task from its post to its end, and says in words what happens to it.

Pure: `words`, `waiting`, `happened`, `curve`. With I/O: `following` reads the chain, `metrics` asks servers,
`untaken` finds what a solver would refuse, `printing` prints. `beside` runs work in threads, `losses` keeps
checked metrics, and `progress` defines who is told. `command` is the loop.
"""
