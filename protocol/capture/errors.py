"""The one error of `capture`: everything that keeps a training step from becoming a program, listed at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from protocol.errors import AssayError


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that cannot be captured: what it is, where the submitter's code asks for it, what to do instead."""

    what: str
    remedy: str
    source: str = ""

    def __str__(self) -> str:
        place = f"\n      at {self.source}" if self.source else ""
        return f"  - {self.what}{place}\n      {self.remedy}"


class CaptureError(AssayError, ValueError):
    """The step cannot be captured. `problems` holds every reason that was found, with its remedy."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = (
            "this step cannot be captured" if count == 1 else f"this step cannot be captured, {count} reasons"
        )
        super().__init__("\n".join([f"{head}:", *map(str, self.problems)]))


class Problems:
    """Collects the reasons of several independent examinations, so that a submitter sees all of them at once."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep the reasons of a `CaptureError` raised inside and go on."""
        try:
            yield
        except CaptureError as error:
            self.add(error.problems)

    def add(self, problems: Iterable[Problem]) -> None:
        """Keep some reasons."""
        self._found.update(dict.fromkeys(problems))

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._found)

    def raise_any(self) -> None:
        """Raise one `CaptureError` if there was a reason."""
        if self._found:
            raise CaptureError(self._found)
