"""Finds the line of the submitter's code that caused a node of the traced graph, and the module of the model
that was running.

When a forward operation is dispatched, the Python stack shows its line. The autograd engine runs backward
operations without that stack, so their lines are looked up by the sequence number that they share with the
forward operation.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protocol.capture.errors import CaptureError, Problem
from protocol.capture.tracing.checks import (
    DRAWN,
    data_dependent,
    require_traced,
    second_derivative,
    state_made_inside,
)

HIDDEN = (
    os.path.dirname(torch.__file__) + os.sep,
    str(Path(__file__).parents[1]) + os.sep,
    contextlib.__file__,
)
"""The places whose code is not the submitter's: the folders of torch and of `protocol.capture`, and the file
of contextlib, whose code runs when a context of torch or of `protocol.capture` is entered. To find the
submitter's line, the frames are read from the innermost outwards; the first frame outside these places is the
submitter's.
"""
SOURCE_KEY = "source"
"""Key in `node.meta`: the source line."""
BACKWARD_KEY = "backward"
"""Key in `node.meta`: whether the autograd engine made the node."""
TORCH = os.path.dirname(torch.__file__)
MAKING_STATE = os.path.join(TORCH, "nn", "init") + ".py"
VALIDATING = os.path.join(TORCH, "distributions", "distribution") + ".py", ("__init__", "_validate_sample")


class SourceRecorder(TorchDispatchMode):
    """While active, records the source line that caused each node of `make_fx`'s graph."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._by_sequence: dict[int, str] = {}
        self._modules: list[str] = []
        self.graph: torch.fx.Graph | None = None
        """The graph that is being traced, None before its first operation."""
        self.problems: list[Problem] = []
        """Problems with lines that read a number from the batch, or that make new parameters. A line that
        reads a number gets a made-up one, so that a single trace finds all such lines.
        """

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
        if func is torch.ops.aten._linalg_check_errors.default:
            return None  # there are no values to check, and the checked operation is refused by its own name
        if func is not torch.ops.aten.lift_fresh.default:  # its operand is a literal of `torch.tensor`
            require_traced((args, kwargs), source)
        result = func(*args, **(kwargs or {}))
        if nodes is not None:
            self.graph = proxy_mode.tracer.graph  # type: ignore[union-attr]
            made = list(islice(reversed(nodes), len(nodes) - before))
            for node in made:
                node.meta[SOURCE_KEY] = source
                if torch.Tag.nondeterministic_seeded in func.tags and made_here():
                    self.problems.append(state_made_inside(source))
                node.meta[BACKWARD_KEY] = torch._C._current_autograd_node() is not None
            number = isinstance(result, torch.SymInt | torch.SymFloat | torch.SymBool)
            if number or _sized_by_data(result):
                for node in made:
                    self.graph.erase_node(node)
            if number:
                return self._made_up(args[0], source)
        if _sized_by_data(result):
            raise CaptureError([data_dependent(source, remedy_here())])
        return result

    def _made_up(self, x: torch.Tensor, source: str) -> bool | float:
        """A made-up value, 1 or True, for a line that reads the contents of `x`.

        Raises `CaptureError` if the same line reads again, as in a loop.
        """
        problem = data_dependent(source, remedy_here())
        if problem in self.problems:
            raise CaptureError([problem])
        self.problems.append(problem)
        return True if x.dtype is torch.bool else 1.0 if x.is_floating_point() else 1

    def _source(self) -> str:
        backward: Any = torch._C._current_autograd_node()
        if backward is not None:
            return self._by_sequence.get(backward._sequence_nr(), "")
        source = source_here()
        if self._modules and self._modules[-1]:
            source += f" (module {self._modules[-1]})"
        # Several operations may share a sequence number; the first of them is the differentiable operation.
        self._by_sequence.setdefault(torch._C._autograd._get_sequence_nr() - 1, source)
        return source

    @contextmanager
    def names_of(self, model: nn.Module) -> Iterator[None]:
        """Track which submodule is running, by its name in `model`."""
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


def _sized_by_data(result: Any) -> bool:
    shapes = (x.shape for x in tree_leaves(result) if isinstance(x, torch.Tensor))
    return any(isinstance(size, torch.SymInt) for shape in shapes for size in shape)


def source_of(node: torch.fx.Node) -> str:
    """The source of a node: `file:line: text (module name)`, or empty if torch made the node by itself."""
    return str(node.meta.get(SOURCE_KEY, ""))


def source_of_error(error: BaseException) -> str:
    """The innermost line of the submitter's code that an exception came through."""
    return _line(reversed(list(traceback.walk_tb(error.__traceback__))))


def made_here() -> bool:
    """Whether the running code initialises a new parameter."""
    frames = (frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe(1)))
    return MAKING_STATE in frames


def remedy_here() -> str:
    """A specific remedy if the running code validates a distribution's arguments or uses layerdrop; otherwise
    empty.
    """
    for frame, _ in traceback.walk_stack(sys._getframe(1)):
        code = frame.f_code
        if code.co_filename == VALIDATING[0] and code.co_name in VALIDATING[1]:
            return "pass validate_args=False to the distribution: it checks what its tensors hold"
        if {"layerdrop", "layer_drop"} & {*code.co_names}:
            return f"build the model with layerdrop=0: {DRAWN}"
        if not code.co_filename.startswith(HIDDEN):
            break
    return ""


def source_here() -> str:
    """The line of the submitter's code that is running; empty if there is none."""
    return _line(traceback.walk_stack(sys._getframe(1)))


def require_one_derivative(of: str) -> None:
    """Refuse a backward pass that is to be differentiated again, as with `create_graph`. `of` names the
    operation whose backward pass this is, for example "a recurrent layer"; the refusal quotes this name.
    """
    if torch.is_grad_enabled():
        raise CaptureError([second_derivative(of, source_here())])


def traceback_of(error: BaseException) -> str:
    """An exception as Python prints it, with only the submitter's own frames; each line ends with a newline."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(HIDDEN)
    ]
    head = ["Traceback (most recent call last):\n"] if frames else []
    return "".join([*head, *traceback.format_list(frames), *traceback.format_exception_only(error)])


def is_of_the_step(error: BaseException) -> bool:
    """Whether the error was raised by the submitter's code, or by a library such as torch. False if it was
    raised by code of `capture`.
    """
    *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
    return not innermost.f_code.co_filename.startswith(HIDDEN[1])


def _line(frames: Iterable[tuple[FrameType, int]]) -> str:
    """The innermost line of the submitter's code in `frames`, which start with the innermost frame; empty if
    there is none.
    """
    for frame, number in frames:
        path = frame.f_code.co_filename
        if not path.startswith(HIDDEN):
            return f"{os.path.relpath(path)}:{number}: {linecache.getline(path, number).strip()}"
    return ""
