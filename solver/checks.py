"""Judges the facts that `solver check` finds: each becomes a line that is fine, a warning or a problem.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from protocol.chain.parameters import TOKEN
from protocol.errors import ExitCode

GIB: Final = 1 << 30
LEAST_MEMORY: Final = 4 * GIB
"""With less memory than this, only models of a few million parameters fit."""
LEAST_DISK: Final = GIB
"""With less disk than this, only a few tasks' checkpoints fit, and the journal may stop."""
GOOD_DISK: Final = 20 * GIB
CLOCK_SECONDS: Final = 30.0
"""Tolerated difference in seconds between this machine's clock and the newest block's time. A clock that is
ahead may differ by the time of a few more blocks. With a greater difference, certificates or relays are
refused, and people misread deadlines.
"""
BLOCKS: Final = 5
LATE_SECONDS: Final = 600.0
GAMES: Final = 16
"""The number of false games at once for which the coin should last. At most this many games of a task are
played at once (`task.GAMES_AT_ONCE`).
"""
COIN: Final = 10**18


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Line:
    """One finding. `remedy` says what to do; `code` is the exit code if it is a problem."""

    item: str
    level: Level
    found: str
    remedy: str = ""
    code: ExitCode = ExitCode.HOPELESS

    def __str__(self) -> str:
        """The finding as a line of text."""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.level:8} {self.item:12} {self.found}{remedy}"


def exit_code(lines: Sequence[Line]) -> ExitCode:
    """0 if there is no problem, 1 if all problems may disappear with time, otherwise the gravest code."""
    codes = [line.code for line in lines if line.level is Level.PROBLEM]
    return max(codes, default=ExitCode.FINE)


def memory(total: int, free: int, what: str = "") -> Line:
    """Judge the bytes of memory of the machine, or of a GPU (`what`)."""
    found = f"{what}{free / GIB:.1f} of {total / GIB:.1f} GiB free"
    if total < LEAST_MEMORY:
        return Line(
            "memory", Level.WARNING, found, f"{LEAST_MEMORY // GIB} GiB or more train tasks of usual sizes"
        )
    if free < total // 4:
        return Line("memory", Level.WARNING, found, "end what else uses it before tasks are trained")
    return Line("memory", Level.OK, found)


def disk(free: int, spared: int) -> Line:
    """Judge the free bytes below the home folder, of which `spared` may be used for tasks' checkpoints."""
    found = f"{free / GIB:.1f} GiB free, {spared / GIB:.1f} for a task's checkpoints"
    if free < LEAST_DISK:
        return Line("disk", Level.PROBLEM, found, "make room below --home", ExitCode.RETRY)
    if free < GOOD_DISK:
        return Line("disk", Level.WARNING, found, f"{GOOD_DISK // GIB} GiB or more keep tasks of usual sizes")
    return Line("disk", Level.OK, found)


def clock(here: float, block: float, block_time: float, moved: bool) -> Line:
    """Judge this machine's clock against the newest block's time, both seconds since 1970. On a development
    chain, whose time may be `moved`, a difference is not the machine's fault.
    """
    ahead = here - block
    found = f"{abs(ahead):.0f} s {'after' if ahead >= 0 else 'before'} the newest block's time"
    behind = CLOCK_SECONDS + BLOCKS * block_time
    if -CLOCK_SECONDS <= ahead <= behind:
        return Line("clock", Level.OK, found)
    if moved:
        return Line("clock", Level.WARNING, found, "a development chain's time may be moved by hand")
    remedy = "set this machine's clock by a time server"
    if ahead > 0:
        remedy += "; where it is right, the chain makes no blocks or its node (--rpc) is behind"
    level = Level.PROBLEM if abs(ahead) > LATE_SECONDS else Level.WARNING
    return Line("clock", level, found, remedy, ExitCode.RETRY)


def stake(free: int, held: int, locked: int, due: int, account: str) -> Line:
    """Compare this account's token units with the stake that the settings require (`due`). The units free in
    the vault, held by the account and locked in tasks are added up.
    """
    have = free + held + locked
    parts = f"{free / TOKEN:g} free, {locked / TOKEN:g} locked in tasks, {held / TOKEN:g} on the account"
    found = f"{have / TOKEN:g} tokens ({parts}) for a stake of {due / TOKEN:g}"
    if have < due:
        return Line(
            "stake",
            Level.PROBLEM,
            found,
            f"send {(due - have) / TOKEN:g} tokens to {account} or lower `stake`",
        )
    return Line("stake", Level.OK, found)


def defence(wei: int, task: int, game: int, account: str) -> Line:
    """Compare the account's wei with what a task's transactions (`task`) and false games (`game` each) cost
    at today's gas price.
    """
    most = task + GAMES * game
    found = f"{wei / COIN:.6g} coin; a task takes {task / COIN:.3g}, {GAMES} false games {GAMES * game / COIN:.3g}"
    if wei < task + game:
        return Line(
            "defence",
            Level.PROBLEM,
            found,
            f"send {(most - wei) / COIN:.3g} coin to {account}: who cannot answer a game is slashed",
        )
    if wei < most:
        return Line("defence", Level.WARNING, found, f"send {(most - wei) / COIN:.3g} coin to {account}")
    return Line("defence", Level.OK, found)


@dataclass(frozen=True, slots=True)
class Prospect:
    """An open task, judged with this node's costs. `price` is what the node would ask for, and `floor` is the
    node's floor price without the margin; both are in token units. `seconds` is the time of training.
    `refusal` says why the node would not bid on the task; it is empty if the node would.
    """

    task: int
    price: int = 0
    floor: int = 0
    seconds: float = 0.0
    refusal: str = ""

    @property
    def an_hour(self) -> float:
        """How much the price exceeds `floor`, which has no margin, in token units per hour of training."""
        return (self.price - self.floor) / max(self.seconds, 1.0) * 3600


def profit(prospects: Sequence[Prospect], cost_an_hour: float) -> Line:
    """Judge what the tasks that take bids now would pay. `cost_an_hour` is the machine's cost per hour in
    token units.
    """
    own = f"an hour of this machine costs {cost_an_hour / TOKEN:.4g} tokens"
    paying = sorted((one for one in prospects if not one.refusal), key=lambda one: -one.an_hour)
    if not prospects:
        return Line("profit", Level.OK, f"no task takes bids now; {own}")
    if not paying:
        first = prospects[0]
        return Line(
            "profit",
            Level.WARNING,
            f"none of {len(prospects)} open tasks would be bid on; {own}; task {first.task}: {first.refusal}",
            "look whether `cost_per_hour`, `watts`, `kwh_price` and `margin` are right for you",
        )
    best = paying[0]
    return Line(
        "profit",
        Level.OK,
        f"{len(paying)} of {len(prospects)} open tasks pay; task {best.task} brings {best.price / TOKEN:.6g} tokens "
        f"for {best.seconds / 3600:.3g} hours, {best.an_hour / TOKEN:.4g} an hour above its costs; {own}",
    )
