"""What this verifier keeps on disk for others: the results that it holds for its seats, and the items that it
serves as a juror. Both are canonical bytes, one file per group of tensors (`protocol.commitments.groups`).

Results and items are separate from the files for replaying a task, which are deleted when the task is over.
Results are served for a time after settlement; items are served while the task lasts. Clients compare the
root of what they receive with the root on the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from protocol.commitments.atomic import write_atomically
from protocol.commitments.groups import cut, groups
from protocol.commitments.hashing import HASH_BYTES
from protocol.node.disk import remove

_ROOTS, _BUNDLE = "roots", "bundle"


class Results:
    """Results below `folder`, by task, checkpoint number and group number."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hold(self, task: int, checkpoint: int, tensors: Sequence[bytes]) -> None:
        """Keep a task's last checkpoint. Raises OSError."""
        for group, numbers in enumerate(groups(map(len, tensors))):
            write_atomically(self.path(task, checkpoint, group), b"".join(tensors[k] for k in numbers))

    def drop(self, task: int) -> None:
        """Delete a task's result."""
        remove(self._folder / str(task))

    def path(self, task: int, checkpoint: int, group: int) -> Path:
        """The file of a group of tensors, which exists if the group is held."""
        # Files of earlier releases, named after tensors, are not taken for groups.
        return self._folder / str(task) / str(checkpoint) / f"group-{group}"


class Items(Results):
    """Items that jurors of this verifier serve (`protocol.dispute.juries`): states with the roots of all
    checkpoints, and bundles, which contain the constants. Bundles are in the folder `bundles`, by hash.
    """

    def __init__(self, folder: Path, bundles: Path) -> None:
        super().__init__(folder)
        self._bundles = bundles

    def hold_state(
        self, task: int, number: int, roots: Sequence[bytes], link: Callable[[Callable[[int], Path]], None]
    ) -> None:
        """Keep a state, and the roots r_0 … r_K of all checkpoints. `link` must store each group of the
        state's tensors in a file. It is called with a function that maps the number of a group to the path of
        its file. Raises OSError, CommitmentError.
        """
        link(partial(self.path, task, number))
        write_atomically(self._roots_path(task, number), b"".join(roots))  # last: then all is here

    def hold_bundle(self, task: int, bundle: bytes) -> None:
        """Serve a bundle that is on this machine. Raises OSError."""
        write_atomically(self._folder / str(task) / _BUNDLE, bundle.hex().encode())

    def state(self, task: int, number: int, sizes: Sequence[int]) -> tuple[list[bytes], list[bytes]] | None:
        """The tensors of a held state, and the roots of all checkpoints; None if the state is not held.
        `sizes` are the sizes of the tensors in bytes.
        """
        if not self.has_state(task, number):
            return None
        roots = self._roots_path(task, number).read_bytes()
        tensors: list[bytes] = []
        for group, numbers in enumerate(groups(sizes)):
            data = self.path(task, number, group).read_bytes()
            tensors += cut(data, [sizes[k] for k in numbers])
        return tensors, [roots[at : at + HASH_BYTES] for at in range(0, len(roots), HASH_BYTES)]

    def has_state(self, task: int, number: int) -> bool:
        """Whether a state is held together with the roots."""
        return self._roots_path(task, number).is_file() and self.path(task, number, 0).is_file()

    def roots(self, task: int) -> Path | None:
        """The file with a task's checkpoint roots, concatenated; None if no state of the task is held."""
        return next(iter(sorted((self._folder / str(task)).glob(f"*/{_ROOTS}"))), None)

    def bundle_file(self, bundle: str, name: str) -> Path | None:
        """A file of a served bundle; None if there is none. Both names are untrusted and cannot refer to
        anything outside the bundle.
        """
        if not any(path.read_text() == bundle for path in self._folder.glob(f"[0-9]*/{_BUNDLE}")):
            return None
        folder = (self._bundles / bundle).resolve()
        path = (folder / name).resolve()
        return path if path.is_relative_to(folder) and path.is_file() else None

    def _roots_path(self, task: int, number: int) -> Path:
        return self._folder / str(task) / str(number) / _ROOTS
