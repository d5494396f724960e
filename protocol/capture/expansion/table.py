"""The table of expansions: torch code for ATen operations without a rule. The modules of `expansion.ops` fill it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch.fx import Node

aten = torch.ops.aten
Expansion = Callable[..., Any]
ExpansionT = TypeVar("ExpansionT", bound=Expansion)

EXPANSIONS: dict[OpOverload, Expansion] = {}
"""What an overload consists of: a function of the same arguments with the same results."""
OF_LIBRARIES: dict[str, Expansion] = {}
"""The same for overloads of other libraries, which need not be installed, by name."""
BEYOND_RULES: dict[OpOverload, Callable[[Node], bool]] = {}
"""Of an overload that has a rule, which nodes its rule does not take: they are expanded."""


def expansion_of(overload: OpOverload) -> Expansion | None:
    """What an overload consists of, if anything."""
    return EXPANSIONS.get(overload) or OF_LIBRARIES.get(str(overload))


def expands(
    *overloads: OpOverload, where: Callable[[Node], bool] | None = None
) -> Callable[[ExpansionT], ExpansionT]:
    """Make a function the expansion of some overloads; `where` says of which nodes, if others have a rule."""

    def register(expansion: ExpansionT) -> ExpansionT:
        EXPANSIONS.update(dict.fromkeys(overloads, expansion))
        if where is not None:
            BEYOND_RULES.update(dict.fromkeys(overloads, where))
        return expansion

    return register


def expands_as_torch(*overloads: OpOverload, where: Callable[[Node], bool] | None = None) -> None:
    """Take torch's own decomposition for some overloads."""
    for overload in overloads:
        expands(overload, where=where)(decomposition_table[overload])


def gradients(forward: Callable[..., Tensor], operands: Sequence[Tensor], g: Tensor) -> tuple[Tensor, ...]:
    """What autograd makes of g, the gradient at forward(*operands), at the operands."""
    back: Callable[[Tensor], tuple[Tensor, ...]] = torch.func.vjp(forward, *operands)[1]
    return back(g)


def gradient(forward: Callable[[Tensor], Tensor], x: Tensor, g: Tensor) -> Tensor:
    """`gradients` of one operand."""
    return gradients(forward, [x], g)[0]
