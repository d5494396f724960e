"""Gas figures in documents match tests/vectors/gas.json. The accepted difference is the tolerance of the
forge tests plus the rounding error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import pytest

from tests.toolchain.project import REPOSITORY

TOLERANCE = 0.02
"""Relative difference that is accepted: the same as in contracts/test/harness/Snapshot.sol."""
ROUNDING = 500
"""Largest rounding error of a figure in a document, in gas: these figures are rounded to thousands."""
QUOTED: Mapping[str, Mapping[str, str]] = {
    "docs/performance.md": {
        "draw": "settlement ([all](../contracts/README.md)) | #k; …k; …k gas",
        "attest": "settlement ([all](../contracts/README.md)) | …k; #k; …k gas",
        "settle": "settlement ([all](../contracts/README.md)) | …k; …k; #k gas",
    },
    "contracts/README.md": {
        "post": ": post #k",
        "bid": "bid #k",
        "bid again": "(#k to release another's",
        "assign": "assign #k",
        "cancel": "cancel #k",
        "first progress": "first progress #k",
        "progress": ", progress #k",
        "submit": "submit #k",
        "draw": "draw #k (…k with four",
        "draw of 4 seats": "(#k with four seats",
        "draw of 32 seats": "seats, #k with 32)",
        "attest": "attest #k",
        "redraw": "redraw of a silent seat #k",
        "draw again": "and its draw #k",
        "settle": "settle #k",
        "settle 32 seats": "(#k with 32 seats)",
        "release": "release #k",
        "commit informing": "commitment to inform #k",
        "inform": "informing #k",
        "redraw informed": "redraw after it #k",
        "word of a round": "beacon takes #k",
        "show": "showing it takes #k",
        "attest last seat": "asks for the draw of looks, #k",
        "draw two looks": "draw of two looks #k",
        "draw no looks": "of none #k",
        "reveal digest": "reveal #k,",
        "attest look": "attestation of a look #k",
        "accuse": "accusation #k with the drop",
        "accuse again": "and #k without",
        "answer": "answer #k",
        "contest": "contest #k",
        "take unanswered": "unanswered #k",
        "take unrevealed": "not revealed #k",
        "redraw look": "redraw of a look #k",
        "claim withheld": "claim #k",
        "vote": "a yes #k",
        "vote no": "a no #k",
        "object": "objection #k",
        "open": "opening #k",
        "close withheld": "#k where all said no",
        "close unopened": "#k where all said yes",
        "commit": "commit #k",
        "commit from a seat": "(#k from a seat)",
        "challenge": "challenge up to #k",
        "open late": "open late #k",
        "compensate": "compensate #k",
        "pay fee": "pay fee #k",
        "close moot": "close moot #k",
        "forfeit": "forfeit #k",
        "burn rest": "burn rest #k",
    },
}
"""For each file, the figures that it quotes: their names in the record, and the words around them. # is the
quoted figure, … is any other figure.
"""
RECORDED: Mapping[str, int] = json.loads((REPOSITORY / "tests/vectors/gas.json").read_text())


def wrong(text: str, words: Mapping[str, str], recorded: Mapping[str, int]) -> Iterator[str]:
    """Yields a message for each figure that differs too much from the record, and for each phrase that does
    not occur exactly once.
    """
    flat = " ".join(text.split())
    for name, phrase in words.items():
        pattern = re.escape(phrase).replace(r"\#", r"([\d,]+)").replace("…", r"[\d,]+")
        found, due = re.findall(pattern, flat), recorded[name]
        if len(found) != 1:
            yield f"'{phrase}' is there {len(found)} times, expected once"
        elif abs(int(found[0].replace(",", "")) * 1000 - due) > due * TOLERANCE + ROUNDING:
            yield f"'{phrase.replace('#', found[0])}' has to be {round(due / 1000):,}k"


@pytest.mark.parametrize("file", QUOTED)
def test_quoted_gas_is_what_is_recorded(file: str) -> None:
    assert list(wrong((REPOSITORY / file).read_text(), QUOTED[file], RECORDED)) == []


def test_a_figure_that_is_old_or_gone_is_named() -> None:
    text, words = "post 553k,\nbid 1,060k", {"post": "post #k", "bid": "bid #k", "settle": "settle #k"}
    assert list(wrong(text, words, {"post": 544_445, "bid": 1_009_000, "settle": 1})) == [
        "'bid 1,060k' has to be 1,009k",
        "'settle #k' is there 0 times, expected once",
    ]
