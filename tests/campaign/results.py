"""What has come of the cases: one line of JSON each as it comes, so that an interrupted campaign goes on where it was.

What was played on another commit counts only where that is asked for: a checkout with changes has no commit to its
name, so what it plays is never taken up again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from tests.campaign.cases import Case, cases
from tests.campaign.play import Outcome


@dataclass(frozen=True)
class Result:
    """The outcome of a case. `said` is what the party said where it needed a hand, `wrong` what was wrong in the end;
    both are empty where it came through by itself.
    """

    case: str
    wrong: tuple[str, ...]
    said: str
    seconds: float
    commit: str

    @classmethod
    def of(cls, case: Case, outcome: Outcome, commit: str) -> Self:
        """The part of an outcome that is kept."""
        return cls(str(case), outcome.wrong, outcome.remedy, outcome.seconds, commit)


class Results:
    """Those of a file, by case. `commit` is the checkout's, empty where it has changes."""

    def __init__(self, file: Path, commit: str, any_commit: bool = False) -> None:
        self._file = file
        names = {str(case) for case in cases()}
        self.found: dict[str, Result] = {}
        for line in file.read_text().splitlines() if file.is_file() else []:
            result = read(json.loads(line))
            counts = result.commit and (any_commit or result.commit == commit)
            if counts and result.case in names:
                self.found[result.case] = result

    def add(self, result: Result) -> None:
        """Keep one more."""
        self.found[result.case] = result
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")

    def left(self) -> list[Case]:
        """The cases that have not come to a good end, in order."""
        return [case for case in cases() if str(case) not in self.found or self.found[str(case)].wrong]


def read(kept: Mapping[str, object]) -> Result:
    """One result as it was written."""
    result = Result(**kept)  # type: ignore[arg-type]
    return replace(result, wrong=tuple(result.wrong))
