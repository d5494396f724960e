"""Checks, before a lane absorbs a message, that `emit` could have produced it.

`absorb` itself accepts any bytes and clamps exponents (`library.lanes`). The checks here are stricter: a
signed message that they refuse proves that its lane did not run the job's program.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from protocol.commitments.chunks import tensor_root
from protocol.commitments.tensors import is_canonical
from protocol.exchange.errors import MessageError
from protocol.lanes import Lanes
from protocol.lanes.splitting import COUNT, EXPONENT, INDEX
from protocol.numerics.rows import MIN_EXPONENT, SENTINEL
from protocol.numerics.types import from_bytes
from protocol.program.types import TensorType


def tensor_of(data: bytes, type_: TensorType, root: bytes, what: str) -> Tensor:
    """The tensor in received bytes. Raises `MessageError` for a wrong length, root or encoding."""
    if len(data) != type_.nbytes:
        raise MessageError(what, expected=f"{type_.nbytes} bytes of {type_}", got=str(len(data)))
    found = tensor_root(data)
    if found != root:
        raise MessageError(what, expected=f"root {root.hex()}", got=found.hex())
    if not is_canonical(int(type_.dtype), data):
        raise MessageError(what, expected=f"canonical bytes of {type_}", got="others")
    return from_bytes(data, type_.dtype, type_.shape)


def require_message(lanes: Lanes, message: Sequence[Tensor], what: str) -> None:
    """Raise `MessageError` unless the tensors have the types of a message, and have values that `emit` can
    produce.
    """
    types = lanes.message_types
    if len(message) != len(types):
        raise MessageError(what, expected=f"{len(types)} tensors", got=str(len(message)))
    for (name, type_), x in zip(types.items(), message, strict=True):
        if x.dtype != type_.dtype.storage or tuple(x.shape) != type_.shape:
            raise MessageError(f"{name} of {what}", expected=str(type_), got=f"{x.dtype} {[*x.shape]}")
    by_name = dict(zip(types, message, strict=True))
    if INDEX in by_name and lanes.block is not None:
        _require_between(f"{INDEX} of {what}", by_name[INDEX], 0, lanes.block - 1)
    # emit clamps to magnitudes below 2 ** most_exponent, so exponents are at most that. If training gave NaN
    # or an infinity, the exponent is SENTINEL and all values are 0.
    exponents = by_name[EXPONENT]
    numbers = exponents[exponents != SENTINEL]
    if numbers.numel():
        _require_between(f"{EXPONENT} of {what}", numbers, MIN_EXPONENT, lanes.most_exponent)
    if float(by_name[COUNT]) != 1.0:
        raise MessageError(f"{COUNT} of {what}", expected="1", got=str(float(by_name[COUNT])))


def _require_between(what: str, x: Tensor, least: int, most: int) -> None:
    found = [int(bound) for bound in x.aminmax()]
    if found[0] < least or found[1] > most:
        raise MessageError(what, expected=f"{least} to {most}", got=f"{found[0]} to {found[1]}")
