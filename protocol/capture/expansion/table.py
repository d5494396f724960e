"""The table of expansions: torch code for ATen operations that no rule takes. The modules of
`expansion.ops` fill it.
"""

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
"""The expansion of each overload: a function with the same arguments and results."""
OF_LIBRARIES: dict[str, Expansion] = {}
"""Like `EXPANSIONS`, but keyed by overload name, so that the overload's library need not be installed."""
BEYOND_RULES: dict[OpOverload, Callable[[Node], bool]] = {}
"""For overloads that also have a rule: a function that tells whether a node must be expanded because the rule
cannot take it.
"""


def expansion_of(overload: OpOverload) -> Expansion | None:
    """The expansion of an overload, or None."""
    return EXPANSIONS.get(overload) or OF_LIBRARIES.get(str(overload))


def expands(
    *overloads: OpOverload, where: Callable[[Node], bool] | None = None
) -> Callable[[ExpansionT], ExpansionT]:
    """Decorator: register an expansion of some overloads. If these also have a rule, `where` selects the
    nodes that are expanded.
    """

    def register(expansion: ExpansionT) -> ExpansionT:
        EXPANSIONS.update(dict.fromkeys(overloads, expansion))
        if where is not None:
            BEYOND_RULES.update(dict.fromkeys(overloads, where))
        return expansion

    return register


def expands_as_torch(*overloads: OpOverload, where: Callable[[Node], bool] | None = None) -> None:
    """Register torch's own decompositions as the expansions of some overloads; `where` is as in `expands`."""
    for overload in overloads:
        expands(overload, where=where)(decomposition_table[overload])


def gradients(forward: Callable[..., Tensor], operands: Sequence[Tensor], g: Tensor) -> tuple[Tensor, ...]:
    """The gradients of the operands, as autograd derives them from g, the gradient of `forward`'s result."""
    back: Callable[[Tensor], tuple[Tensor, ...]] = torch.func.vjp(forward, *operands)[1]
    return back(g)


def gradient(forward: Callable[[Tensor], Tensor], x: Tensor, g: Tensor) -> Tensor:
    """`gradients` with respect to one operand."""
    return gradients(forward, [x], g)[0]
