"""Computes the values of nodes that depend on constants alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import Node
from torch.fx.node import map_arg


def value_of(node: Node, known: dict[Node, Any], is_computed: Callable[[Node], bool]) -> Any:
    """The value of a node that is computed from constants alone, by operations for which `is_computed` holds;
    None for any other node. `known` has the constants. The values found are added to it, and None for nodes
    that have none.

    A path in a graph may have more nodes than Python allows nested calls, so no function calls itself here.
    """
    pending = [node]
    while pending:
        each = pending[-1]
        operands = each.all_input_nodes
        if each in known:
            pending.pop()
        elif not is_computed(each) or any(x in known and known[x] is None for x in operands):
            known[each] = None
        elif unknown := [x for x in operands if x not in known]:
            pending.extend(unknown)
        else:
            args: Any = map_arg(each.args, known.__getitem__)
            kwargs: Any = map_arg(each.kwargs, known.__getitem__)
            operation: Any = each.target
            known[each] = operation(*args, **kwargs)
    return known[node]
