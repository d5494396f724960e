"""`assay watch`: follows one task from its posting to its end, and says in words what happens to it.

Pure: `words`, `waiting`, `happened`, `curve`. With I/O: `following` reads the chain, `metrics` asks servers,
`untaken` finds why a solver would refuse the task, `printing` prints. `beside` runs work in threads, `losses`
keeps checked metrics, `callbacks` passes them on, and `progress` defines the interface of a listener.
`command` is the loop.
"""
