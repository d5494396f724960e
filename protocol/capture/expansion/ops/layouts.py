"""Rearrangements of elements: pixel and channel shuffles, and tensors with given diagonals."""

from __future__ import annotations

from protocol.capture.expansion.table import aten, expands_as_torch

expands_as_torch(
    *(aten.pixel_shuffle.default, aten.pixel_unshuffle.default, aten.channel_shuffle.default),
    aten.diag_embed.default,
)
