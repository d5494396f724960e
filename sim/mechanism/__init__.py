"""The contracts' token movements, on arrays: one row is one market, and a call acts on many rows at once.

Every function mirrors a function of contracts/src and takes NumPy arrays of int64, or of Python integers (dtype object)
where amounts are the chain's own. Nothing here is random, and no decisions are made here.
"""
