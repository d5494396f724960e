"""Stage 3: rewrites operations that no rule takes in terms of operations that have rules. Each such node is
replaced by its expansion.

An expansion is torch code: torch's own decomposition, or a function of `expansion.ops`. If ATen has a
gradient as a single operation, its expansion is usually the gradient that autograd derives from the expanded
forward pass. So programs need no new kinds of instruction, and users of torch can read what is computed.

Operations that have a rule, and their exact arithmetic, are in `lowering.ops`.
"""
