"""The demo: sixteen stories on its own development chain, told while they happen, and a report of what they cost.

`stories` says who plays, `stage` starts chain and parties, `event_lines` and `report` read the chain's events and
receipts; no number in the report comes from here. Not the parties themselves: those are the production commands, and
for the cheats `tests/adversaries`.
"""
