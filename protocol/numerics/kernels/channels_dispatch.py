"""Chooses the batch norm functions of `channels`. They use the instruction set that `fused_dispatch` chooses.

If `channels_for` returns None, callers run the same operations in torch.
"""

from __future__ import annotations

import logging
from functools import cache

from torch import Tensor

from protocol.numerics.kernels.channels import Channels
from protocol.numerics.kernels.channels_self_test import DIGESTS, digests_of
from protocol.numerics.kernels.fused_dispatch import fused_for

_log = logging.getLogger("assay.numerics")


def channels_for(x: Tensor) -> Channels | None:
    """The functions to use for `x`. None if `x` is empty or not f32 on the CPU, or if none may be used."""
    if x.device.type != "cpu":
        return None
    fused = fused_for(x)
    return None if fused is None else _usable(fused.name.removeprefix("fused-"))


@cache
def _usable(variant: str) -> Channels | None:
    channels = Channels(variant)
    wrong = [name for name, made in digests_of(channels).items() if made != DIGESTS[name]]
    if wrong:
        _log.warning("%s is not used: wrong bits in %s", channels.name, ", ".join(wrong))
    return None if wrong else channels
