"""Rows of a table by index, and the gradient of the table: a gather, and a sum by index (arithmetic.md section 5)."""

from __future__ import annotations

import math

import torch

from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.library import embedding as library

aten = torch.ops.aten


@lowers(aten.embedding.default)
def embedding(
    lowering: Lowering,
    _: torch.fx.Node,
    table: View,
    index: View,
    padding: int = -1,  # noqa: ARG001 - not used in the forward pass
    by_frequency: bool = False,
    sparse: bool = False,
) -> View:
    """The rows of a table [R, C] at an index [n…], as [n…, C]. An index outside the table reads zeros; torch
    would raise an error.
    """
    _require_plain(by_frequency, sparse)
    b = lowering.builder
    return View.of(b.gather(table.elements(b), lowering.elements(index, DType.I32)))


@lowers(aten.embedding_dense_backward.default)
def embedding_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    index: View,
    rows: int,
    padding: int,
    by_frequency: bool,
) -> View:
    """The gradient of a table with `rows` rows. Row r is the sum of all vectors g[n] for which index[n] is r;
    g is [n…, C]. The row of the padding index stays zero.
    """
    _require_plain(by_frequency)
    b = lowering.builder
    tokens = b.reshape(lowering.elements(index, DType.I32), (math.prod(index.shape),))
    if padding >= 0:
        nowhere = b.i32(library.NOWHERE)
        tokens = b.select(b.eq(tokens, b.i32(padding)), nowhere, tokens)
    table = b.reshape(g.elements(b), (tokens.type.elements, g.shape[-1]))
    return View.of(lowering.call(library.embedding_grad, table, tokens, rows=rows))


def _require_plain(by_frequency: bool, sparse: bool = False) -> None:
    if by_frequency or sparse:
        raise Unsupported(
            "with scale_grad_by_freq or sparse gradients", "use nn.Embedding with its defaults for both"
        )
