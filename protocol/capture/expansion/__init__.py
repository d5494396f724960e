"""Operations without a rule, rewritten in terms of operations that have one: each node is replaced by its expansion.

An expansion is torch code: torch's own decomposition, or a function of `expansion.ops`. A gradient that ATen has as one
operation is what autograd derives from the expanded forward pass. So no new kinds of instruction are needed in a
program, and users of torch can read what is computed.

Not here: operations that have a rule (`lowering.ops`), and their exact arithmetic.
"""
