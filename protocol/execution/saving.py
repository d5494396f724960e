"""Makes a safetensors file from a state, for users of the trained model."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from protocol.numerics.types import DType
from protocol.program.step import State, StepProgram


def safetensors_of(program: StepProgram, state: State, metadata: Mapping[str, str]) -> bytes:
    """The bytes of a safetensors file of a state, with `metadata` in its header."""
    from safetensors.torch import save

    types = dict(zip(program.state, program.state_types, strict=True))
    tensors = {
        name: x.view(torch.uint32) if types[name].dtype is DType.U32 else x.contiguous().cpu()
        for name, x in state.items()
    }
    return save(tensors, {"format": "pt", **metadata})
