"""Stage 3: replaces each operation that has no rule by its expansion, which uses operations that have rules.

An expansion is torch code: either torch's own decomposition or a function of `expansion.ops`. Where ATen has
a single operation for a gradient, that operation's expansion is usually the gradient that autograd derives
from the expanded forward pass. So programs need no new kinds of instruction, and users of torch can read what
is computed.

Operations that have a rule, and their exact arithmetic, are in `lowering.ops`.
"""
