"""The demo: sixteen stories on its own development chain, told while they happen, and a report of what they cost.

`stories` lists the players, `stage` starts chain and parties, `event_lines` and `report` read the chain's events and
receipts; all numbers in the report come from the chain. The parties are the production commands, and for the cheats
`tests/adversaries`.
"""
