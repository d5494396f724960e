"""The pass over a traced graph that replaces operations by their expansions. It replaces each operation that
has an expansion and that no rule takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch._ops import OpOverload
from torch.func import functionalize
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg

from protocol.capture.expansion import ops  # noqa: F401 - fills the table
from protocol.capture.expansion.distinct import add_where_distinct
from protocol.capture.expansion.empties import zeros_where_written
from protocol.capture.expansion.table import BEYOND_RULES, expansion_of
from protocol.capture.tracing.sources import BACKWARD_KEY, SOURCE_KEY

INHERITED = (SOURCE_KEY, BACKWARD_KEY)


def expand(graph: Graph, has_rule: Callable[[OpOverload], bool]) -> None:
    """Expand nodes, and the new nodes of their expansions, until none is left to expand (`is_expanded`). A
    new node inherits the source line and the mark of the backward pass from the node that it replaces.
    """
    add_where_distinct(graph)
    zeros_where_written(graph)
    waiting = [node for node in graph.nodes if node.op == "call_function"]
    while waiting:
        node = waiting.pop()
        if is_expanded(node, has_rule):
            waiting.extend(_replaced(graph, node))
    graph.lint()


def is_expanded(node: Node, has_rule: Callable[[OpOverload], bool]) -> bool:
    """Whether a node is to be expanded: it has an expansion, and no rule takes it. A node that draws from the
    submitter's own generator is never expanded.
    """
    target = node.target
    if (
        not isinstance(target, OpOverload)
        or expansion_of(target) is None
        or node.kwargs.get("generator") is not None
    ):
        return False
    return not has_rule(target) or (target in BEYOND_RULES and BEYOND_RULES[target](node))


def _replaced(graph: Graph, node: Node) -> list[Node]:
    """Replace a node by its expansion and return the new nodes. If the expansion raises an error, the node
    stays.
    """
    expansion = expansion_of(node.target)  # type: ignore[arg-type]
    assert expansion is not None, "it is expanded"
    operands = node.all_input_nodes

    def run(*values: Tensor) -> Any:
        known = dict(zip(operands, values, strict=True))
        args, kwargs = map_arg((node.args, node.kwargs), known.__getitem__)
        return _as_declared(expansion(*args, **kwargs), node.meta["val"])

    values = [operand.meta["val"] for operand in operands]
    mode = _mode(node)
    try:
        with mode:
            inner = make_fx(functionalize(run), tracing_mode="fake")(*values).graph
    except Exception:
        return []  # invalid for these operands, or refused by torch; lowering then refuses the node by name
    inner.eliminate_dead_code()
    made: list[Node] = []
    known: dict[Node, Any] = {}
    remaining = iter(operands)
    with graph.inserting_before(node):
        for part in inner.nodes:
            if part.op == "placeholder":
                known[part] = next(remaining)
            elif part.op == "call_function":
                copy = known[part] = graph.node_copy(part, known.__getitem__)
                copy.meta = {k: part.meta[k] for k in ("val",) if k in part.meta}
                copy.meta |= {k: node.meta[k] for k in INHERITED if k in node.meta}
                made.append(copy)
    (results,) = map_arg(inner.output_node().args, known.__getitem__)
    _hand_over(graph, node, results)
    return made


def _as_declared(found: Any, declared: Any) -> Any:
    """The results of an expansion, converted to the types that the operation's results have in torch. Several
    results become a plain tuple.
    """
    if isinstance(found, Tensor):
        assert found.shape == declared.shape, f"{tuple(declared.shape)} is {tuple(found.shape)}"
        return found if found.dtype is declared.dtype else found.to(declared.dtype)
    return None if found is None else tuple(_as_declared(*pair) for pair in zip(found, declared, strict=True))


def _hand_over(graph: Graph, node: Node, results: Any) -> None:
    """Redirect the users of a node to `results`, which is one node or several, and erase the node."""
    if isinstance(results, Node):
        node.replace_all_uses_with(results)
    else:
        for item in list(node.users):
            found = results[item.args[1]]
            item.replace_all_uses_with(found)
            graph.erase_node(item)
    graph.erase_node(node)


def _mode(node: Node) -> Any:
    """The `FakeTensorMode` of a node's result."""
    value = node.meta["val"]
    first = value if isinstance(value, Tensor) else next(x for x in value if isinstance(x, Tensor))
    return first.fake_mode  # type: ignore[attr-defined]
