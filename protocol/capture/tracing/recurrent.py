"""Recurrent layers in a trace: a whole sequence is one operation, such as `assay::lstm`, instead of about a
hundred operations per time step.

While `Rolled` is active, torch.nn's LSTM, GRU and RNN are traced as these operations. The products of the
input and its weights, the gradient of the input, and the gradients of all weights are not part of these
operations. Torch's own operations compute them, for all time steps at once. Packed sequences, and layers with
projections, are traced one time step after the other. For the preflight, the operations can compute in any
type. A training step that asks for second derivatives through these operations is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from protocol.capture.tracing.sources import require_one_derivative

LIBRARY = torch.library.Library("assay", "DEF")
SCHEMAS = {
    "lstm": "(Tensor x, Tensor h, Tensor c, Tensor weight, Tensor? bias) -> (Tensor, Tensor, Tensor)",
    "lstm_grad": "(Tensor of_h, Tensor of_c, Tensor gates, Tensor cells, Tensor before, Tensor weight) "
    "-> (Tensor, Tensor, Tensor)",
    "gru": "(Tensor x, Tensor h, Tensor weight, Tensor? bias) -> (Tensor, Tensor, Tensor)",
    "gru_grad": "(Tensor of_h, Tensor gates, Tensor of_n, Tensor before, Tensor weight) -> (Tensor, Tensor, Tensor)",
    "rnn": "(Tensor x, Tensor h, Tensor weight, Tensor? bias, bool relu) -> Tensor",
    "rnn_grad": "(Tensor of_h, Tensor states, Tensor weight, bool relu) -> (Tensor, Tensor)",
}
"""The operations' schemas, as in `protocol.program.library.recurrent`."""
for _name, _schema in SCHEMAS.items():
    LIBRARY.define(_name + _schema)
OPS = torch.ops.assay


def _computes(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        LIBRARY.impl(name, function, "CompositeExplicitAutograd")
        return function

    return register


@_computes("lstm")
def _lstm(x: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
    made = []
    for row in x:
        i, f, g, o = (row + F.linear(h, weight, bias)).chunk(4, -1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        h = o * c.tanh()
        made.append((h, c, torch.cat([i, f, g, o], -1)))
    return _stacked(made)


@_computes("lstm_grad")
def _lstm_grad(
    of_h: Tensor, of_c: Tensor, gates: Tensor, cells: Tensor, before: Tensor, weight: Tensor
) -> tuple[Tensor, ...]:
    dh = dc = torch.zeros_like(of_h[0])
    made = []
    for t in reversed(range(len(of_h))):
        i, f, g, o = gates[t].chunk(4, -1)
        dh, tanh = of_h[t] + dh, cells[t].tanh()
        dc = of_c[t] + dc + dh * o * (1 - tanh * tanh)
        terms = (
            dc * g * i * (1 - i),
            dc * before[t] * f * (1 - f),
            dc * i * (1 - g * g),
            dh * tanh * o * (1 - o),
        )
        made.append((torch.cat(terms, -1),))
        dh, dc = made[-1][0] @ weight, dc * f
    return *_stacked(made[::-1]), dh, dc


@_computes("gru")
def _gru(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
    made = []
    for row in x:
        of_r, of_z, own = row.chunk(3, -1)
        to_r, to_z, of_n = F.linear(h, weight, bias).chunk(3, -1)
        r, z = (of_r + to_r).sigmoid(), (of_z + to_z).sigmoid()
        n = (own + r * of_n).tanh()
        h = (h - n) * z + n
        made.append((h, torch.cat([r, z, n], -1), of_n))
    return _stacked(made)


@_computes("gru_grad")
def _gru_grad(
    of_h: Tensor, gates: Tensor, of_n: Tensor, before: Tensor, weight: Tensor
) -> tuple[Tensor, ...]:
    dh = torch.zeros_like(of_h[0])
    made = []
    for t in reversed(range(len(of_h))):
        r, z, n = gates[t].chunk(3, -1)
        dh = of_h[t] + dh
        dn = dh * (1 - z) * (1 - n * n)
        dr, dz = dn * of_n[t] * r * (1 - r), dh * (before[t] - n) * z * (1 - z)
        made.append((torch.cat([dr, dz, dn], -1), torch.cat([dr, dz, dn * r], -1)))
        dh = dh * z + made[-1][1] @ weight
    return *_stacked(made[::-1]), dh


@_computes("rnn")
def _rnn(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
    made = []
    for row in x:
        h = row + F.linear(h, weight, bias)
        h = h.relu() if relu else h.tanh()
        made.append(h)
    return torch.stack(made)


@_computes("rnn_grad")
def _rnn_grad(of_h: Tensor, states: Tensor, weight: Tensor, relu: bool) -> tuple[Tensor, ...]:
    dh = torch.zeros_like(of_h[0])
    made = []
    for t in reversed(range(len(of_h))):
        dh = of_h[t] + dh
        raw = torch.where(states[t] > 0, dh, 0) if relu else dh * (1 - states[t] * states[t])
        made.append((raw,))
        dh = raw @ weight
    return *_stacked(made[::-1]), dh


def _stacked(made: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    return tuple(torch.stack(column) for column in zip(*made, strict=True))


def _like(*shapes: Callable[..., tuple[int, ...]]) -> Callable[..., Any]:
    def fake(*args: Any) -> Any:
        made = tuple(args[0].new_empty(shape(*args)) for shape in shapes)
        return made if len(made) > 1 else made[0]

    return fake


def _steps(x: Tensor, h: Tensor, *_: Any) -> tuple[int, ...]:
    return len(x), *h.shape


def _same(x: Tensor, *_: Any) -> tuple[int, ...]:
    return tuple(x.shape)


def _row(x: Tensor, *_: Any) -> tuple[int, ...]:
    return tuple(x.shape[1:])


def _gates(of_h: Tensor, *others: Tensor) -> tuple[int, ...]:
    return next(tuple(x.shape) for x in others if x.shape[-1] > of_h.shape[-1])


_SHAPES: Mapping[str, tuple[Callable[..., tuple[int, ...]], ...]] = {
    "lstm": (_steps, _steps, _same),
    "lstm_grad": (_gates, _row, _row),
    "gru": (_steps, _same, _steps),
    "gru_grad": (_gates, _gates, _row),
    "rnn": (_steps,),
    "rnn_grad": (_same, _row),
}
for _name, _shapes in _SHAPES.items():
    torch.library.register_fake(f"assay::{_name}", _like(*_shapes), lib=LIBRARY)


class _Lstm(torch.autograd.Function):
    """Computes h and c of every time step. Takes the products of the inputs and their weights, plus the input
    bias, as [T, B, 4 H]; the first h and c; and the recurrent weight and bias.
    """

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Any:
        states, cells, gates = OPS.lstm(*given)
        ctx.save_for_backward(states, cells, gates, *given[1:4])
        ctx.biased = given[4] is not None
        return states, cells

    @staticmethod
    def backward(ctx: Any, of_h: Tensor, of_c: Tensor) -> Any:
        require_one_derivative("a recurrent layer")
        states, cells, gates, h, c, weight = ctx.saved_tensors
        raw, dh, dc = OPS.lstm_grad(of_h, of_c, gates, cells, _before(c, cells), weight)
        return raw, dh, dc, *_of_weights(raw, _before(h, states), ctx.biased)


class _Gru(torch.autograd.Function):
    """Computes h of every time step. Takes the products of the inputs and their weights, plus the input bias,
    as [T, B, 3 H]; the first h; and the recurrent weight and bias.
    """

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Any:
        states, gates, of_n = OPS.gru(*given)
        ctx.save_for_backward(states, gates, of_n, *given[1:3])
        ctx.biased = given[3] is not None
        return states

    @staticmethod
    def backward(ctx: Any, of_h: Tensor) -> Any:
        require_one_derivative("a recurrent layer")
        states, gates, of_n, h, weight = ctx.saved_tensors
        before = _before(h, states)
        own, recurrent, dh = OPS.gru_grad(of_h, gates, of_n, before, weight)
        return own, dh, *_of_weights(recurrent, before, ctx.biased)


class _Rnn(torch.autograd.Function):
    """Computes the hidden state h of every time step. Takes the products of the inputs and their weights,
    plus the input bias, as [T, B, H]; the first h; the recurrent weight and bias; and whether the activation
    is ReLU (otherwise it is tanh).
    """

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Any:
        states = OPS.rnn(*given)
        ctx.save_for_backward(states, *given[1:3])
        ctx.biased, ctx.relu = given[3] is not None, given[4]
        return states

    @staticmethod
    def backward(ctx: Any, of_h: Tensor) -> Any:
        require_one_derivative("a recurrent layer")
        states, h, weight = ctx.saved_tensors
        raw, dh = OPS.rnn_grad(of_h, states, weight, ctx.relu)
        return raw, dh, *_of_weights(raw, _before(h, states), ctx.biased), None


def _before(first: Tensor, states: Tensor) -> Tensor:
    """The values before each step: `first`, then all but the last of `states`."""
    return torch.cat([first.unsqueeze(0), states[:-1]])


def _of_weights(raw: Tensor, before: Tensor, biased: bool) -> tuple[Tensor, Tensor | None]:
    """Gradients of the recurrent weight and bias."""
    return raw.flatten(0, 1).mT @ before.flatten(0, 1), raw.sum((0, 1)) if biased else None


@dataclass(frozen=True)
class _Layers:
    """The arguments of torch.lstm and similar functions, by name."""

    x: Tensor
    first: tuple[Tensor, ...]
    weights: Sequence[Tensor]
    biased: bool
    layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool

    def run(self, kind: Any, *options: Any) -> tuple[Tensor, ...]:
        """The output, and the final state of each layer and direction."""
        x = self.x.transpose(0, 1) if self.batch_first else self.x
        directions = 2 if self.bidirectional else 1
        ends: list[list[Tensor]] = [[] for _ in self.first]
        weights = self._by_direction()
        for layer in range(self.layers):
            outputs = []
            for direction in range(directions):
                place = directions * layer + direction
                given = x.flip(0) if direction else x
                found = self._one(kind, given, [t[place] for t in self.first], next(weights), options)
                for end, carried in zip(ends, found):
                    end.append(carried[-1])
                outputs.append(found[0].flip(0) if direction else found[0])
            x = outputs[0] if directions == 1 else torch.cat(outputs, -1)
            if self.dropout and self.train and layer < self.layers - 1:
                x = torch.dropout(x, self.dropout, True)
        output = x.transpose(0, 1) if self.batch_first else x
        return output, *(torch.stack(end) for end in ends)

    def _by_direction(self) -> Iterator[Sequence[Tensor]]:
        each = 4 if self.biased else 2
        for start in range(0, len(self.weights), each):
            yield self.weights[start : start + each]

    def _one(
        self, kind: Any, x: Tensor, first: list[Tensor], weights: Sequence[Tensor], options: Sequence[Any]
    ) -> tuple[Tensor, ...]:
        own, recurrent, *biases = weights
        of_own, of_recurrent = biases or (None, None)
        found = kind.apply(F.linear(x, own, of_own), *first, recurrent, of_recurrent, *options)
        return found if isinstance(found, tuple) else (found,)


KINDS: Mapping[Any, tuple[Any, tuple[Any, ...], int]] = {
    torch.lstm: (_Lstm, (), 4),
    torch.gru: (_Gru, (), 3),
    torch.rnn_tanh: (_Rnn, (False,), 1),
    torch.rnn_relu: (_Rnn, (True,), 1),
}
"""The function that computes each kind of layer, its additional arguments, and its number of gates."""


class Rolled(TorchFunctionMode):
    """While active, recurrent layers are traced as the operations in `SCHEMAS`."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in KINDS and (layers := _layers(args, KINDS[func][2])) is not None:
            kind, options, _ = KINDS[func]
            return layers.run(kind, *options)
        return func(*args, **(kwargs or {}))


def _layers(args: Sequence[Any], gates: int) -> _Layers | None:
    """The arguments of a recurrent function by name, if they have the form in which torch.nn passes them.
    None for packed sequences and for layers with projections.
    """
    if len(args) != len(_Layers.__dataclass_fields__) or not isinstance(args[3], bool):
        return None
    x, first, weights, *rest = args
    found = _Layers(x, (first,) if isinstance(first, Tensor) else tuple(first), weights, *rest)
    width = found.first[0].shape[-1]
    return found if weights[1].shape == (gates * width, width) else None
