"""The contracts' rules and token movements, on arrays: one row is one market, and a call acts on many.

Most functions mirror contracts/src; some auctions are only for comparison. Amounts are NumPy arrays of
int64, or of Python integers (dtype object) where they are the chain's own. Nothing here is random, and no
decisions are made here.
"""
