"""The results that this verifier holds for its seats, on disk: canonical bytes, a file for each tensor.

They lie apart from what is needed to replay a task, which goes when the task is over; these are served for a time after
it was settled. Who fetches them compares their root with the chain's.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from protocol.commitments.atomic import write_atomically


class Results:
    """Under `folder`, by task, number of the checkpoint, and number of the tensor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hold(self, task: int, checkpoint: int, tensors: Sequence[bytes]) -> None:
        """Keep a task's last checkpoint. Raises OSError."""
        for number, data in enumerate(tensors):
            write_atomically(self.path(task, checkpoint, number), data)

    def drop(self, task: int) -> None:
        """Delete a task's."""
        shutil.rmtree(self._folder / str(task), ignore_errors=True)

    def path(self, task: int, checkpoint: int, tensor: int) -> Path:
        """Where a tensor is, if it is held."""
        return self._folder / str(task) / str(checkpoint) / str(tensor)
