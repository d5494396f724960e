"""Plays one case: the scene up to its stage, the fault, the rest of the scene, and the outcome."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from tests.campaign.checks import Books, wrongs
from tests.campaign.fault import Fault, Strike
from tests.campaign.stages import Stage, Who
from tests.campaign.world import World, world

Scene = Callable[[World, Who], Iterator[Stage]]


UNFELT: Final = "the party never felt the fault"
TRIES: Final = 3


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case. `wrong` says what was wrong; it is empty if the case ended as it must. `remedy`
    is what the party told its operator to do; it is empty if the party asked for nothing. `report` helps to
    investigate a failure.
    """

    wrong: tuple[str, ...]
    remedy: str
    seconds: float
    report: str = ""


def play(make: Callable[[], Fault], stage: Stage, who: Who, scene: Scene, folder: Path) -> Outcome:
    """Play a case in a new folder, which is deleted if nothing is wrong.

    Sometimes the party finishes its work at this stage before the fault begins, and so never feels it. If
    that is all that is wrong, the case is played again, up to `TRIES` times in all.
    """
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        outcome = _play(make(), stage, who, scene, folder)
        if outcome.wrong != (UNFELT,):
            break
    return outcome


def _play(fault: Fault, stage: Stage, who: Who, scene: Scene, folder: Path) -> Outcome:
    began = monotonic()
    wrong: list[str] = []
    report = by_hand = ""
    try:
        with world(folder) as made:
            try:
                wrong += _played(fault, stage, who, scene, made)
            finally:
                if made.party is not None:
                    report, by_hand = made.party.report(), made.party.needed_hand
    except Exception as error:  # any exception is an outcome of the case
        wrong.append(f"{type(error).__name__}: {error}")
        report += "\n" + traceback.format_exc()
    if not wrong:
        shutil.rmtree(folder)
    return Outcome(tuple(wrong), fault.remedy or by_hand, round(monotonic() - began, 1), report)


def _played(fault: Fault, stage: Stage, who: Who, scene: Scene, made: World) -> Iterator[str]:
    fault.prepare(made)
    strike, before = Strike(fault, made), None
    for reached in scene(made, who):
        before = before or Books.of(made)
        strike.stage()
        if reached is stage and not strike.began:
            strike.begin()
        elif not strike.began:
            fault.before(made)
    strike.end()
    if made.party is not None:
        made.party.mind()
    if not strike.began:
        yield f"the scene never came to the stage {stage}"
    elif not fault.felt(made):
        yield UNFELT
    assert before is not None, "a scene has stages"
    yield from wrongs(made, before)
