"""The only table from torch types to program types, the limits that follow from it, and conversions.

Of the program types (`protocol.numerics.types`), tensors of models and datasets use only four. torch insists
on int64 for labels and indices; a program holds them as i32, and `fits` tells whether they fit.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from protocol.numerics.types import DType, canonical
from protocol.program.types import TensorType

PROGRAM_TYPES = {
    torch.float32: DType.F32,
    torch.uint8: DType.U8,
    torch.int32: DType.I32,
    torch.int64: DType.I32,
    torch.bool: DType.BOOL,
}
"""The program type for each torch type; a type that is not listed cannot be represented."""


WIDENED = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
    torch.uint16: torch.int32,
}
"""Types that convert without loss to a type that a program has."""


def type_name(dtype: torch.dtype) -> str:
    """The name of a torch type without its prefix, as in `float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def type_names(dtypes: Iterable[torch.dtype]) -> str:
    """The names of some types, separated by commas."""
    return ", ".join(map(type_name, dtypes))


def fits(t: Tensor) -> bool:
    """Whether every element of an int64 tensor lies in i32; True for tensors of other types."""
    return t.dtype is not torch.int64 or not t.numel() or -(2**31) <= int(t.min()) <= int(t.max()) < 2**31


def stored_as(dtype: torch.dtype) -> torch.dtype:
    """The torch type in which the elements of a tensor of type `dtype` are committed."""
    return torch.int32 if dtype is torch.int64 else dtype


def as_committed(t: Tensor) -> Tensor:
    """A contiguous CPU copy of a tensor, in the form that is committed: the elements of an int64 tensor
    become i32, other types stay as they are, and every NaN is canonical.
    """
    stored = t.to(stored_as(t.dtype))
    return canonical(stored.detach().cpu()).clone(memory_format=torch.contiguous_format)


def as_seen_by_torch(dtype: torch.dtype) -> torch.dtype:
    """The type in which committed elements reach the objective: int64 for int32, as torch requires for labels."""
    return torch.int64 if dtype is torch.int32 else dtype


def tensor_type(t: Tensor) -> TensorType:
    """Type and shape of a tensor in a program. Raises `KeyError` for a type that cannot be represented."""
    return TensorType(PROGRAM_TYPES[t.dtype], tuple(t.shape))
