"""Messages as they come from elsewhere: checked before anything is trained on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from protocol.lanes.errors import MessageError
from protocol.numerics.types import to_bytes
from protocol.program.types import TensorType


@dataclass(frozen=True)
class Message:
    """What a lane sends after a round: its number, the round's, and the tensors by name."""

    lane: int
    round: int
    tensors: Mapping[str, Tensor]

    def check(self, types: Mapping[str, TensorType], width: int, number: int) -> None:
        """Raise `MessageError` unless it is of a lane of the job, of this round, and of these types."""
        where = f"message of lane {self.lane}"
        if not 0 <= self.lane < width:
            raise MessageError(where, expected=f"a lane from 0 to {width - 1}", got=str(self.lane))
        if self.round != number:
            raise MessageError(
                where, expected=f"a message of round {number}", got=f"one of round {self.round}"
            )
        if list(self.tensors) != list(types):
            raise MessageError(where, expected=f"tensors {list(types)}", got=str(list(self.tensors)))
        for name, type_ in types.items():
            x = self.tensors[name]
            if x.dtype != type_.dtype.storage or tuple(x.shape) != type_.shape:
                raise MessageError(
                    where, expected=f"{name} of type {type_}", got=f"{x.dtype} {list(x.shape)}"
                )

    def encoded(self, types: Mapping[str, TensorType]) -> bytes:
        """The canonical bytes of the tensors, one behind the other."""
        return b"".join(bytes(to_bytes(self.tensors[name], type_.dtype)) for name, type_ in types.items())
