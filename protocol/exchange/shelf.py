"""The files that a lane keeps and serves: announcements, and tensors named by their roots.

    rounds/<round>/<lane>.json      announcements, this lane's and others'
    tensors/<2 digits>/<root>       canonical bytes
    equivocations/<round>/<lane>/   announcements of two states of one round; they are not served

The announcement of a trained round is written after its tensors. For this lane, these are all tensors of the
state; for another lane, the tensors of the message. So if such an announcement is here, its message is here
too, until the message is removed. This lane's last announcement of a trained round shows how far the lane has
come.

The announcement of the job's result has the job's number of rounds as its round number. No trained round has
this number, because rounds are counted from 0. The tensors of the result are not kept.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from protocol.commitments.atomic import remove_stale, write_atomically
from protocol.commitments.chunks import tensor_root
from protocol.commitments.hashing import BytesLike
from protocol.exchange.announcements import Announcement
from protocol.exchange.errors import Equivocation, MessageError
from protocol.numerics.types import canonical_buffer
from protocol.program.step import State, StepProgram

ROUNDS: Final = "rounds"
TENSORS: Final = "tensors"
EQUIVOCATIONS: Final = "equivocations"


class Place(Protocol):
    """A public place where files are published, such as a bucket."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file, replacing an existing file of that name."""


def announcement_name(number: int, lane: int) -> str:
    """The name of an announcement's file."""
    return f"{ROUNDS}/{number}/{lane}.json"


def tensor_name(root: bytes) -> str:
    """The name of a tensor's file."""
    return f"{TENSORS}/{root[:1].hex()}/{root.hex()}"


class Shelf:
    """The folder of one lane in one run of one job. Any thread may read and write. Raises `OSError` if the
    disk fails.

    If `place` is given, announcements and published tensors are written there first, for readers that cannot
    reach this lane.
    """

    def __init__(self, folder: Path, place: Place | None = None) -> None:
        self.folder = folder
        self._place = place
        for name in (ROUNDS, TENSORS):
            (folder / name).mkdir(parents=True, exist_ok=True)
            remove_stale(folder / name)

    def put(self, root: bytes, data: BytesLike, publish: bool = True) -> None:
        """Keep the bytes of the tensor whose root is `root`. If `publish` is true, also publish them."""
        # An unpublished tensor may have the same bytes (such as a 1.0), so publish even if they are kept already.
        if publish and self._place is not None:
            self._place.write(tensor_name(root), bytes(data))
        if self.tensor(root) is None:
            write_atomically(self.folder / tensor_name(root), data)

    def put_state(self, step: StepProgram, state: State, published: Container[int]) -> tuple[bytes, ...]:
        """Keep all tensors of a state and return their roots. `published` holds the positions of the tensors
        to publish.
        """
        roots = tuple(step.tensor_roots(state))
        for k, (x, type_, root) in enumerate(zip(step.order(state), step.state_types, roots, strict=True)):
            self.put(root, canonical_buffer(x, type_.dtype), publish=k in published)
        return roots

    def tensor(self, root: bytes) -> bytes | None:
        """A tensor's bytes; None if they are missing or damaged."""
        try:
            data = (self.folder / tensor_name(root)).read_bytes()
        except FileNotFoundError:
            return None
        return data if data and tensor_root(data) == root else None

    def announce(self, announcement: Announcement) -> None:
        """Keep an announcement. Raises `Equivocation` if the lane has announced another state of the same round."""
        kept = self.announced(announcement.number, announcement.lane)
        if kept is not None:
            if kept.state_root != announcement.state_root:
                raise Equivocation(
                    f"lane {kept.lane} in round {kept.number}",
                    expected=f"the state {kept.state_root.hex()} that it has signed before",
                    got=announcement.state_root.hex(),
                    remedy="keep the first: this machine computes other bits than before",
                )
            return
        name, data = announcement_name(announcement.number, announcement.lane), announcement.encode()
        if self._place is not None:
            self._place.write(name, data)
        write_atomically(self.folder / name, data)

    def announced(self, number: int, lane: int) -> Announcement | None:
        """A lane's announcement of a round; None if it is missing or damaged."""
        try:
            return Announcement.parse((self.folder / announcement_name(number, lane)).read_bytes())
        except (FileNotFoundError, MessageError):
            return None

    def equivocation(self, first: Announcement, second: Announcement) -> Equivocation:
        """Keep a lane's announcements of two states of one round as evidence, and return the error that names
        the lane.
        """
        folder = self.folder / EQUIVOCATIONS / str(first.number) / str(first.lane)
        for one in (first, second):
            write_atomically(folder / f"{one.state_root.hex()}.json", one.encode())
        return Equivocation(
            f"lane {first.lane} in round {first.number}",
            expected="one signed state",
            got=f"two, {first.state_root.hex()} and {second.state_root.hex()}",
            remedy=f"{folder} has both announcements as evidence; agree with the other operators whether the "
            "lane still counts in this round, and change the file of members: if a lane has trained on this round, "
            "its `run` too, and train the job again",
        )

    def rounds(self) -> list[int]:
        """The rounds with announcements on this shelf, in order."""
        return sorted(int(path.name) for path in (self.folder / ROUNDS).iterdir() if path.name.isdecimal())

    def remove(self, roots: Iterable[bytes]) -> None:
        """Delete the tensors with these roots."""
        for root in roots:
            with suppress(FileNotFoundError):
                (self.folder / tensor_name(root)).unlink()
