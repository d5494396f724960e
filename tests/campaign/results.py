"""Results of the cases: a line of JSON is written as each case ends, so that an interrupted campaign can
resume.

Results of another commit count only on request. Results of a checkout with changes have no commit, so they do
not count in a later run.
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
    """The stored outcome of a case. If the party needed a hand, `said` is what it told its operator. `wrong`
    says what was wrong in the end. Each is empty if there was nothing to tell.
    """

    case: str
    wrong: tuple[str, ...]
    said: str
    seconds: float
    commit: str

    @classmethod
    def of(cls, case: Case, outcome: Outcome, commit: str) -> Self:
        """The result of a case with this outcome."""
        return cls(str(case), outcome.wrong, outcome.remedy, outcome.seconds, commit)


class Results:
    """The results in a file. `found` has those that count, by case. `commit` is the checkout's commit; it is
    empty if the checkout has changes.
    """

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
        """Add a result to `found` and to the file."""
        self.found[result.case] = result
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")

    def left(self) -> list[Case]:
        """The cases without a good result yet, in order."""
        return [case for case in cases() if str(case) not in self.found or self.found[str(case)].wrong]


def read(kept: Mapping[str, object]) -> Result:
    """A result from its parsed line."""
    result = Result(**kept)  # type: ignore[arg-type]
    return replace(result, wrong=tuple(result.wrong))
