"""What the contracts do with tokens, on arrays: one row is one market, all rows do the same at once.

Every function mirrors a function of contracts/src and takes NumPy arrays of int64, or of Python integers (dtype object)
where amounts are the chain's own. Nothing here is random and nobody decides anything.
"""
