"""Operations that have no rule, written in torch by those that have one: each node is replaced by what it consists of.

What an operation consists of is torch code: torch's own decomposition, or a function of `expansion.ops`. A gradient
that ATen has as one operation is what autograd makes of the expanded forward pass. So a program has no more kinds of
instruction for it, and what it computes can be read where torch's users can read it.

Not here: operations that have a rule (`lowering.ops`); how they are computed exactly.
"""
