"""Generates the campaign's part of docs/security.md from docs/campaign.json; no figure is written by hand."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.campaign.cases import Case, cases, fault_of, impossible
from tests.campaign.network_faults import Reorganisation
from tests.campaign.results import Result, read
from tests.campaign.stages import Who

DOCS: Final = Path(__file__).parents[2] / "docs"
KEPT: Final = DOCS / "campaign.json"
PAGE: Final = DOCS / "security.md"
BEGIN, END = "<!-- played: make campaign -->", "<!-- played end -->"
REMEDY: Final = re.compile(r"got .*?; (?P<remedy>[^;]*)")
"""The remedy in an error message of this project; the first if there are several."""


def record(results: Iterable[Result]) -> None:
    """Write the results into docs/campaign.json and the generated part into docs/security.md."""
    kept = sorted(results, key=lambda result: result.case)
    KEPT.write_text(json.dumps([asdict(result) for result in kept], indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(PAGE.read_text(), kept))


def recorded() -> list[Result]:
    """The results in docs/campaign.json."""
    return [read(kept) for kept in json.loads(KEPT.read_text())]


def page(text: str, results: Sequence[Result]) -> str:
    """The page `text`, with its generated part made from the results. Raises ValueError if the page does not
    mark that part.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"expected one part between {BEGIN!r} and {END!r} in {PAGE}")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return "\n".join([before + BEGIN, *lines({result.case: result for result in results}), END + after])


def lines(results: Mapping[str, Result]) -> Iterator[str]:
    """Yields the lines of the generated part: totals, a row for each fault, the cases that needed an operator
    or went wrong, and the number of impossible cases by reason.
    """
    played = [case for case in cases() if str(case) in results]
    commits = sorted({results[str(case)].commit[:8] for case in played})
    wrong = [case for case in played if results[str(case)].wrong]
    hand = [case for case in played if results[str(case)].said and case not in wrong]
    yield ""
    good = len(played) - len(wrong)
    yield (
        f"Of {len(cases())} cases {len(played)} were played, at {_named('commit', commits)}: {good} ended as they "
        f"must, {len(hand)} of them after an operator had done what the party had asked for."
    )
    yield ""
    yield "| fault | submitter | solver | verifier | what an operator must do |"
    yield "|---|---|---|---|---|"
    for name, group in _by_fault().items():
        cells = [_cell([case for case in group if case.who is who], results) for who in Who]
        yield f"| {name} | {' | '.join(cells)} | {fault_of(group[0].fault).operator} |"
    yield ""
    yield "In a cell: cases that ended as they must, of those played; in brackets those that needed a hand."
    yield from _listed("Cases that needed a hand, and what the party asked for", _asked(hand, results))
    yield from _listed(
        "Cases that went wrong", [f"{case}: {'; '.join(results[str(case)].wrong)}" for case in wrong]
    )
    reasons = Counter(why for _, why in impossible())
    yield from _listed(
        "Cases that cannot be, by reason", [f"{why}: {count}" for why, count in sorted(reasons.items())]
    )
    yield ""


def _by_fault() -> Mapping[str, list[Case]]:
    """The cases by the name of their table row, in the order of the faults."""
    found: dict[str, list[Case]] = {}
    order = list(dict.fromkeys(case.fault for case in sorted(cases(), key=_place)))
    for name in order:
        row = "re-org, 1 to 8 deep" if isinstance(fault_of(name), Reorganisation) else name
        found.setdefault(row, []).extend(case for case in cases() if case.fault == name)
    return found


def _place(case: Case) -> int:
    from tests.campaign.faults import FAULTS

    return list(FAULTS).index(case.fault)


def _cell(group: Sequence[Case], results: Mapping[str, Result]) -> str:
    found = [results[str(case)] for case in group if str(case) in results]
    if not group:
        return "-"
    good = [result for result in found if not result.wrong]
    hand = sum(bool(result.said) for result in good)
    return f"{len(good)} of {len(found)}" + (f" ({hand})" if hand else "")


def _asked(hand: Sequence[Case], results: Mapping[str, Result]) -> list[str]:
    """A line for each remedy that a party asked for, with the cases in which it did."""
    asked: dict[str, list[str]] = {}
    for case in hand:
        match = REMEDY.search(results[str(case)].said)
        asked.setdefault(match["remedy"] if match else results[str(case)].said, []).append(str(case))
    return [f"{remedy}: {'; '.join(names)}" for remedy, names in asked.items()]


def _listed(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield ""
        yield f"{title}:"
        yield ""
        yield from (f"- {item}" for item in items)


def _named(what: str, names: Sequence[str]) -> str:
    return f"{what}{'s' if len(names) > 1 else ''} {', '.join(names) or 'none'}"
