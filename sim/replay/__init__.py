"""The simulation's agents on the real contracts, every balance compared with the engine's ledger to the last unit.

`play.replay` is the door; it loads torch and what the chain needs, `scenarios` and `amounts` do not. `shadow` is the
engine's own market, which decides; `stage` a chain with everybody on it; `tasks`, `auditing`, `looking`, `accusing`,
`disputing` and `games` carry out by transactions what was decided; `books` is what the engine expects of it, `reading`
what the chain holds, `comparison` both side by side. `training` is what is trained, under the `terms`, `digests` what
is attested of it; `drawing` finds the chain's draws again.
"""
