"""Reads the state from which a training starts if it continues an earlier task. This is the earlier task's
final state, with weights and moments. It comes from memory, or from the folder that `assay result` and `assay
watch` write.

The submitter may choose any state, so no proof is needed: the terms commit to the new task's initial state.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.description import RunTable
from assay.errors import StartError

if TYPE_CHECKING:
    from torch import Tensor

STATE: Final = "state.safetensors"
_WORD: Final = 1 << 32


@dataclass(frozen=True)
class Start:
    """The final state of a task, by the names of its tensors."""

    state: dict[str, Tensor]
    what: str
    """Names this start in errors."""

    @property
    def seed(self) -> int:
        """The key of the task's random numbers. Raises StartError unless the state has a key of two integers."""
        key = self.state.get("key")
        if key is None or key.numel() != 2 or key.is_floating_point() or key.is_complex():
            raise StartError(
                self.what,
                expected="the final state of a task, with its key",
                got="a state without one" if key is None else f"{key.numel()} values of {key.dtype}",
                remedy="name a result of `assay result`, `assay watch` or `assay.train`",
            )
        low, high = (int(word) % _WORD for word in key.tolist())
        return low + _WORD * high


def read_start(folder: Path) -> Start:
    """Read the final state of a task. `folder` is the folder of a result, or the state's file in it. Raises
    StartError.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(folder / STATE if folder.is_dir() else folder)
    except (SafetensorError, OSError, ValueError) as error:
        raise StartError(
            f"start {folder}",
            expected=f"the folder of a result, with {STATE}",
            got=f"{type(error).__name__}: {str(error)[:200]!a}",
            remedy="write it with `assay result TASK --output FOLDER`",
        ) from error
    state = {name: t.view(torch.int32) if t.dtype == torch.uint32 else t for name, t in tensors.items()}
    return Start(state, f"start {folder}")


def seed_of(task: RunTable, start: Start | None) -> int:
    """The task's seed. If none is given, it is 0 or, for a task that continues an earlier one, the earlier
    task's seed plus one. Raises StartError if the given seed is the earlier task's, because the same batches
    would be drawn again.
    """
    if start is None:
        return task.seed
    if "seed" not in task.model_fields_set:
        return (start.seed + 1) % _WORD**2
    if task.seed == start.seed:
        raise StartError(
            "seed",
            expected=f"another than {start.seed}, of the task that training goes on from",
            got=task.seed,
            remedy="leave it out, or choose another: with the same one the same batches are drawn again",
        )
    return task.seed
