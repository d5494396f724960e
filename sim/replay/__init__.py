"""The simulation's agents on the real contracts, every balance compared with the engine's ledger to the last unit.

`play.replay` is the door; it loads web3 and torch, `scenarios` and `amounts` do not. Further in: `training` (what is
trained), `stage` (a chain with everybody on it), `games` (disputes), `tasks` (a task's life), `books` (what the engine
expects), `reading` (what the chain holds), `comparison` (the two side by side), `drawing` (the chain's draws again).
"""
