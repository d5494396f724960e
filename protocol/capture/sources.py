"""Which line of the submitter's code, in which module, caused a node of the captured graph.

Forward operations are seen as they are dispatched, with the Python stack at hand. A backward operation is run by the
autograd engine without one; it is looked up by the sequence number that it shares with its forward operation.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protocol.capture.errors import CaptureError, Problem

HIDDEN = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)
SOURCE_KEY = "source"
"""Where `node.meta` keeps the line."""
BACKWARD_KEY = "backward"
"""Whether the autograd engine made the node."""


class SourceRecorder(TorchDispatchMode):
    """Notes the source line of every node that is made while it is active inside `make_fx`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._by_sequence: dict[int, str] = {}
        self._modules: list[str] = []
        self.graph: torch.fx.Graph | None = None
        """The graph that is being made."""
        self.problems: list[Problem] = []
        """Lines that ask for a number of the batch; each was given a made-up one, so that the others are found too."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        proxy_mode = get_proxy_mode()
        nodes = None if proxy_mode is None else proxy_mode.tracer.graph.nodes
        before = 0 if nodes is None else len(nodes)
        source = self._source()
        if func is not torch.ops.aten.lift_fresh.default:  # which takes what `torch.tensor` spells out
            _require_traced((args, kwargs), source)
        result = func(*args, **(kwargs or {}))
        if nodes is not None:
            self.graph = proxy_mode.tracer.graph  # type: ignore[union-attr]
            made = list(islice(reversed(nodes), len(nodes) - before))
            for node in made:
                node.meta[SOURCE_KEY] = source
                node.meta[BACKWARD_KEY] = torch._C._current_autograd_node() is not None
            number = isinstance(result, torch.SymInt | torch.SymFloat | torch.SymBool)
            if number or _sized_by_data(result):
                for node in made:
                    self.graph.erase_node(node)
            if number:
                return self._made_up(args[0], source)
        if _sized_by_data(result):
            raise CaptureError([data_dependent(source)])
        return result

    def _made_up(self, x: torch.Tensor, source: str) -> bool | float:
        """One, for a line that asks what a tensor holds. Raises `CaptureError` when it asks again, as a loop does."""
        problem = data_dependent(source)
        if problem in self.problems:
            raise CaptureError([problem])
        self.problems.append(problem)
        return True if x.dtype is torch.bool else 1.0 if x.is_floating_point() else 1

    def _source(self) -> str:
        backward: Any = torch._C._current_autograd_node()
        if backward is not None:
            return self._by_sequence.get(backward._sequence_nr(), "")
        source = _line(traceback.walk_stack(sys._getframe(1)))
        if self._modules and self._modules[-1]:
            source += f" (module {self._modules[-1]})"
        # Of several operations under one number the first is the differentiable one.
        self._by_sequence.setdefault(torch._C._autograd._get_sequence_nr() - 1, source)
        return source

    @contextmanager
    def names_of(self, model: nn.Module) -> Iterator[None]:
        """Follow which submodule is running, by its name in `model`."""
        handles = []

        def entering(name: str) -> Any:
            return lambda *_: self._modules.append(name)

        def leaving(*_: Any) -> None:
            self._modules.pop()

        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(entering(name)))
            handles.append(module.register_forward_hook(leaving, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def data_dependent(source: str) -> Problem:
    """A line that goes one way or another by what the batch holds."""
    return Problem(
        "a decision or a shape depends on the data",
        "use torch.where or a mask in place of `if`, `.item()`, boolean indexing and `nonzero`",
        source,
    )


def _sized_by_data(result: Any) -> bool:
    shapes = (x.shape for x in tree_leaves(result) if isinstance(x, torch.Tensor))
    return any(isinstance(size, torch.SymInt) for shape in shapes for size in shape)


def _require_traced(operands: Any, source: str) -> None:
    if any(type(x) in (torch.Tensor, nn.Parameter, nn.Buffer) for x in tree_leaves(operands)):
        what = "a tensor from outside the model and the batch"
        raise CaptureError(
            [Problem(what, "register it as a buffer of the model or put it into the dataset", source)]
        )


def source_of(node: torch.fx.Node) -> str:
    """`file:line: text (module name)`, or nothing where torch made the node by itself."""
    return str(node.meta.get(SOURCE_KEY, ""))


def source_of_error(error: BaseException) -> str:
    """The innermost line of the submitter's code that an exception came through."""
    return _line(reversed(list(traceback.walk_tb(error.__traceback__))))


def _line(frames: Iterable[tuple[FrameType, int]]) -> str:
    """The first line, from the inside out, that is neither torch's nor ours."""
    for frame, number in frames:
        path = frame.f_code.co_filename
        if not path.startswith(HIDDEN):
            return f"{os.path.relpath(path)}:{number}: {linecache.getline(path, number).strip()}"
    return ""
