"""The only error of `capture`: lists everything that keeps a training step from becoming a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from textwrap import indent

from protocol.errors import AssayError


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that cannot be captured: what it is, where the submitter's code asks for it, and what to do
    instead.

    `cause` is the exception that caused the problem, or None. `traceback` is that exception as Python prints
    it, with only the submitter's own frames. It is empty if there is no cause, and for some causes too.
    """

    what: str
    remedy: str
    source: str = ""
    traceback: str = ""
    cause: BaseException | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        place = f"at {self.source}\n" if self.source else ""
        return f"  - {self.what}\n" + indent(f"{self.traceback or place}{self.remedy}", " " * 6)


class CaptureError(AssayError, ValueError):
    """Raised if the step cannot be captured. `problems` holds every reason that was found, with its remedy.

    If exceptions caused some of the problems, the first such exception is the error's `__cause__`.
    """

    has_lines = True

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = (
            "this step cannot be captured" if count == 1 else f"this step cannot be captured, {count} reasons"
        )
        super().__init__("\n".join([f"{head}:", *map(str, self.problems)]))
        causes = [problem.cause for problem in self.problems if problem.cause is not None]
        if causes:
            self.__cause__ = causes[0]


def raise_any(problems: Iterable[Problem]) -> None:
    """Raise one `CaptureError` with all the problems, if there are any."""
    found = tuple(problems)
    if found:
        raise CaptureError(found)


class Problems:
    """The problems that independent checks found, without duplicates, so that a submitter sees all of them at once."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect the problems of a `CaptureError` raised in the `with` block, and continue after the block."""
        try:
            yield
        except CaptureError as error:
            self.add(error.problems)

    def add(self, problems: Iterable[Problem]) -> None:
        """Add some problems."""
        self._found.update(dict.fromkeys(problems))

    def __iter__(self) -> Iterator[Problem]:
        """The problems, in the order in which they were found."""
        return iter(self._found)

    def __bool__(self) -> bool:
        """Whether there is any problem."""
        return bool(self._found)

    def raise_any(self) -> None:
        """Raise one `CaptureError` with all the problems, if there are any."""
        raise_any(self)
