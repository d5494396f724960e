"""Stage 3: rewrites operations for which no rule exists as operations that have rules. Each such node is
replaced by its expansion.

An expansion is torch code: either torch's own decomposition or a function of `expansion.ops`. Where ATen has
a single operation for a gradient, its expansion is usually the gradient that autograd derives from the
expanded forward pass. So programs need no new kinds of instruction, and users of torch can read what is
computed.

Operations that have a rule, and their exact arithmetic, are in `lowering.ops`.
"""
