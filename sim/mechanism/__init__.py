"""The contracts' rules and token movements, on arrays: one row is one market, and a call acts on many rows.

Most functions mirror contracts/src; some auctions exist only for comparison. Amounts are NumPy arrays of
int64, or of Python integers (dtype object) if they are in the chain's units. Nothing here is random or
decides for an agent.
"""
