"""The demo: plays sixteen stories on a development chain, prints what happens, and reports the costs.

`stories` lists the players. `stage` starts the chain and the parties. `event_lines` and `report` read the
chain's events and receipts; all outcomes and costs in the report come from the chain. Honest parties run the
production commands, and cheats run those of `tests/adversaries`.
"""
