"""The one error of `capture`: everything that keeps a training step from becoming a program, listed at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that cannot be captured: what it is, where the submitter's code asks for it, what to do instead."""

    what: str
    remedy: str
    source: str = ""

    def __str__(self) -> str:
        place = f"\n      at {self.source}" if self.source else ""
        return f"  - {self.what}{place}\n      {self.remedy}"


class CaptureError(ValueError):
    """The step cannot be captured. `problems` holds every reason that was found, with its remedy."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = (
            "this step cannot be captured" if count == 1 else f"this step cannot be captured, {count} reasons"
        )
        super().__init__("\n".join([f"{head}:", *map(str, self.problems)]))
