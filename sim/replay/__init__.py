"""Replays the simulation's agents on the real contracts and compares every balance with the engine's ledger exactly.

`play.replay` is the entry point; it loads torch and the chain's client, which `scenarios` and `amounts` do not.
`shadow` is the engine's own market, which makes the decisions. `stage` is a chain with all parties on it. `tasks`,
`auditing`, `looking`, `accusing`, `disputing` and `games` carry out the decisions as transactions. `books` is what the
engine expects the chain to hold, `reading` what it holds, and `comparison` compares them. `training` is what is
trained, `terms` its terms, `digests` what is attested; `drawing` recomputes the chain's draws.
"""
