"""Passes a state between processes in a file, as the canonical bytes of its tensors, in the program's order.
The state's root identifies the state.
"""

from __future__ import annotations

import os
from pathlib import Path

from torch import Tensor

from protocol.numerics.types import to_bytes
from protocol.program.errors import ValueMismatch
from protocol.program.step import State, StepProgram


def write_state(program: StepProgram, state: State, path: Path) -> None:
    """Write a state, replacing the file. The file is not synced to the disk, because it is not needed after
    the processes end.
    """
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        for type_, x in zip(program.state_types, program.order(state), strict=True):
            file.write(to_bytes(x, type_.dtype))
    os.replace(new, path)


def read_state(program: StepProgram, path: Path, root: bytes) -> dict[str, Tensor]:
    """The state in a file. Raises `ValueMismatch` unless the state's root is `root`."""
    data = path.read_bytes()
    pieces, at = [], 0
    for type_ in program.state_types:
        pieces.append(data[at : at + type_.nbytes])
        at += type_.nbytes
    if at != len(data):
        raise ValueMismatch(f"a state of {at} bytes in {path}", f"{len(data)}")
    state = program.state_of(pieces)
    found = program.state_root(state)
    if found != root:
        raise ValueMismatch(f"the state {root.hex()} in {path}", found.hex())
    return state
