"""Recurrent layers, one operation for a whole sequence. `tracing.recurrent` makes these operations."""

from __future__ import annotations

import torch

from protocol.capture.analysis.roles import Role
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.ops.operands import require_f32
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.capture.tracing.recurrent import OPS
from protocol.program.library import recurrent as library
from protocol.program.library.function import Attribute, LibraryFunction

Views = tuple[View, ...]


@lowers(OPS.lstm.default)
def lstm(lowering: Lowering, _: torch.fx.Node, *given: View | None) -> Views:
    """The states, cells and gates of all steps of an LSTM, computed from the input's contribution to the gates."""
    return _layer(lowering, library.lstm, given)


@lowers(OPS.lstm_grad.default)
def lstm_grad(lowering: Lowering, _: torch.fx.Node, *given: View | None) -> Views:
    """Gradients of an LSTM's gates before activation, and of its initial h and c."""
    return _layer(lowering, library.lstm_grad, given)


@lowers(OPS.gru.default)
def gru(lowering: Lowering, _: torch.fx.Node, *given: View | None) -> Views:
    """The states, gates and recurrent parts of all steps of a GRU, computed from the input's contribution to
    the gates.
    """
    return _layer(lowering, library.gru, given)


@lowers(OPS.gru_grad.default)
def gru_grad(lowering: Lowering, _: torch.fx.Node, *given: View | None) -> Views:
    """Gradients of a GRU's input contributions and recurrent parts, and of its initial h."""
    return _layer(lowering, library.gru_grad, given)


@lowers(OPS.rnn.default)
def rnn(lowering: Lowering, _: torch.fx.Node, *given: View | bool | None) -> View:
    """The states of all steps of a plain recurrent layer, computed from the input's contribution to the sums."""
    (states,) = _layer(lowering, library.rnn, given[:-1], relu=bool(given[-1]))
    return states


@lowers(OPS.rnn_grad.default)
def rnn_grad(lowering: Lowering, _: torch.fx.Node, *given: View | bool | None) -> Views:
    """Gradients of a plain recurrent layer's sums, and of its initial h."""
    return _layer(lowering, library.rnn_grad, given[:-1], relu=bool(given[-1]))


def _layer(
    lowering: Lowering, function: LibraryFunction, given: tuple[View | bool | None, ...], **options: Attribute
) -> Views:
    """Call a library function. Its operands are the views among `given`. Its attributes `px` and `py` are the
    bits of forward products. Raises `Unsupported` for a view that is not f32.
    """
    views = [x for x in given if isinstance(x, View)]
    for x in views:
        require_f32(x)
    px, py = lowering.roles.table[Role.PRODUCT]
    operands = [lowering.elements(x) for x in views]
    found = lowering.call_several(function, *operands, px=px, py=py, **options)
    return tuple(map(View.of, found if isinstance(found, tuple) else (found,)))
