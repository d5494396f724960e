"""Replays the simulation's agents on the real contracts, and compares all balances with the engine's.

`play.replay` is the entry point. It loads torch and the chain's client; `scenarios` and `amounts` load
neither. `shadow` is the engine's own market, which makes the decisions. `stage` is a chain with all parties
on it. `tasks`, `auditing`, `looking`, `accusing`, `disputing`, `games` and `claiming` carry out the decisions
as transactions. `books` has the balances that the engine expects, `reading` reads the chain's, and
`comparison` compares the two. `training` has the task's program, `terms` the task's terms, and `digests` the
attestations; `drawing` recomputes the chain's draws.
"""
