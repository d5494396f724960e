"""What the contracts return, as values: one dataclass per struct, fields in ABI order, enums and addresses
typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from eth_utils.address import to_checksum_address

from protocol.dispute.view import Phase, Verdict
from protocol.tasks.task import Terms

NOBODY: Final = "0x" + "00" * 20
"""The zero address: no solver yet, an empty seat."""
NEVER: Final = (1 << 64) - 1
"""The deadline of a game that waits, and of challenges while a draw is asked for and not executed."""
BOUND: Final = (1 << 40) - 1
"""`free_since` of a registration that has a seat or is suspended."""


class TaskStatus(IntEnum):
    """Where a task stands (ITaskMarket.Status)."""

    NONE = 0
    BIDDING = 1
    TRAINING = 2
    SUBMITTED = 3
    SETTLED = 4
    REFUNDED = 5
    VOID = 6
    SLASHED = 7
    UNPAID = 8

    @property
    def is_over(self) -> bool:
        """Whether nothing more can happen to the task."""
        return TaskStatus.SETTLED <= self <= TaskStatus.SLASHED

    @property
    def can_be_challenged(self) -> bool:
        """Whether games on it may open until its `challenge_until`."""
        return self in (TaskStatus.SUBMITTED, TaskStatus.UNPAID)


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task's moving parts (ITaskMarket.Task). Times are seconds since 1970. `bidder` made the best bid; bids have
    moved the end of bidding by `overtime` seconds. `escrow` and `stake` are lock numbers: `stake` that of the best
    bidder's delay penalty, and of the stake itself once submitted. `challenge_until` is NEVER while a draw is asked for
    and not executed. The escrow `owes_draw` the fee of a draw that is asked for.
    """

    task: int
    submitter: str
    escrow: int
    stake: int
    bidder: str
    status: TaskStatus
    size: int
    open_games: int
    owes_draw: bool
    bids_until: int
    train_until: int
    challenge_until: int
    price: int
    overtime: int
    root: bytes
    result: bytes

    @classmethod
    def from_abi(cls, task: int, values: tuple[Any, ...]) -> TaskView:
        """From what `taskOf(task)` returned."""
        submitter, escrow, stake, bidder, status, *rest = values
        parties = to_checksum_address(submitter), to_checksum_address(bidder)
        return cls(task, parties[0], escrow, stake, parties[1], TaskStatus(status), *rest)

    @property
    def solver(self) -> str:
        """The best bidder once bidding is over, NOBODY before."""
        return NOBODY if self.status <= TaskStatus.BIDDING else self.bidder


@dataclass(frozen=True, slots=True)
class Offer:
    """What a registered account accepts (Seats.sol): draws pass it over for a task that asks for more, or pays less."""

    speed: int
    """Operations a second, with the account's own margin: of a seat's replays within the time that the terms leave for
    them (`Terms.least_speed`).
    """
    state_bytes: int
    """Most bytes of a state."""
    lock: int
    """Most that a seat may bind of its stake, token units."""
    fee: int
    """Least pay of a seat for each 10^9 operations, in token units."""
    seat_fee: int
    """Least pay of a seat, and of a look where the task has looks, whatever its operations, in token units."""
    period: int
    """Most seconds that a task's terms bind a seat (`Terms.seat_period`). Redraws, claims and games bind it longer."""

    def unmet(self, terms: Terms) -> tuple[str, ...]:
        """Names of its fields that exclude a task with these terms, computed as by the audit board: a draw can find
        the account if there are none.
        """
        operations = terms.seat_operations
        kept = {
            "speed": terms.least_speed <= self.speed,
            "state_bytes": terms.state_bytes <= self.state_bytes,
            "lock": terms.seat_lock <= self.lock,
            "fee": terms.seat_fee * 10**9 >= self.fee * operations,
            "seat_fee": terms.least_fee >= self.seat_fee,
            "period": terms.seat_period <= self.period,
        }
        return tuple(name for name, is_kept in kept.items() if not is_kept)


@dataclass(frozen=True, slots=True)
class Registration:
    """An account's registration (Seats.sol): its stake is 2^level units, in the vault's lock `lock`. Times are seconds
    since 1970; `resigned_at` is 0 before it resigned.
    """

    account: str
    resigned_at: int
    free_since: int
    level: int
    suspended: bool
    offer: Offer
    lock: int

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> Registration:
        """From what `registrationOf` returned."""
        account, resigned_at, free_since, level, suspended, offer, lock = values
        return cls(
            to_checksum_address(account), resigned_at, free_since, level, suspended, Offer(*offer), lock
        )

    @property
    def is_bound(self) -> bool:
        """Whether it has a seat or is suspended: then no draw finds it."""
        return self.free_since == BOUND


@dataclass(frozen=True, slots=True)
class Seat:
    """Seat number `number` of a task, or one of its looks (Seats.sol), `account` NOBODY while nobody was found. `until`
    is the last second for its attestation, or before it is drawn again. `registration` is the number of the account's
    registration. `caught`: its lock is lost, by a look or by an opening that did not come, and it is paid no fee.
    """

    number: int
    account: str
    registration: int
    until: int
    attested: bool
    released: bool
    caught: bool

    @classmethod
    def from_abi(cls, number: int, values: tuple[Any, ...]) -> Seat:
        """From what `seatsOf` returned at index `number`."""
        account, *rest = values
        return cls(number, to_checksum_address(account), *rest)

    @property
    def is_empty(self) -> bool:
        """Whether no account was found for it."""
        return self.account == NOBODY


@dataclass(frozen=True, slots=True)
class AuditView:
    """The state of a task's draws (Seats.sol). Times are seconds since 1970. `drawn_at` is 0 before the first draw,
    whose `seed` determines the segments of all seats; `until` is the last second for the latest attestation; a
    requested draw is `pending` until it is executed. `pool` counts the registrations of each level, as of the post.
    `purse` is a lock that pays the next draw, left by a seat whose salt was shown, 0 without one; `informed_at` is
    when that happened last, or a jury last ended, 0 before.

    `level` is that of the newest looks that were asked for, 0 before, `look_draws` the draws of this level; `looks`
    were picked in all, the last at `picked_at`, 0 before. Bit i of `looking` and `looked` is slot i of the level:
    still awaited, and attested (before the level's first draw is executed: those of the level below). `claimant` is
    the number + 1 of the seat or look whose claim a jury is to judge, 0 without one. Nothing is awaited of an
    `audited` task.
    """

    pool: tuple[int, ...]
    version: int
    round: int
    drawn_at: int
    until: int
    draws: int
    attested: int
    pending: bool
    escrow_draws: int
    level: int
    claimant: int
    look_draws: int
    purse: int
    informed_at: int
    looks: int
    looking: int
    looked: int
    picked_at: int
    audited: bool
    seed: bytes

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> AuditView:
        """From what `auditOf` returned."""
        pool, *rest = values
        return cls(tuple(pool), *rest)


@dataclass(frozen=True, slots=True)
class PendingDraw:
    """A requested draw (Seats.sol), an entry of the board's queue: of the seats whose bits are set, by a `round` of
    the beacon that was fixed at `fixed_at`. `purse` is the lock that pays for it, 0 where the task's escrow does.
    `level` 1 to 4 is that of looks, whose slots are the bits; no bits where the word picks them. 5 is that of a jury.
    """

    task: int
    seats: int
    round: int
    fixed_at: int
    purse: int
    level: int


@dataclass(frozen=True, slots=True)
class LookView:
    """The state of a look (ILooks). `revealed` is the hash of what the looked-at seat has revealed
    (`protocol.dispute.keys.revealed_word`), `accused` that of the accusation that it owes an answer to by `until`
    (`accusation_word`), whose bond is `lock`; None where there is none. The accused contests it in `game`, 0 where it
    does not. `accusations` counts those made.
    """

    revealed: bytes | None
    accused: bytes | None
    until: int
    lock: int
    game: int
    accusations: int

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> LookView:
        """From what `lookOf` returned."""
        revealed, accused, *rest = values
        return cls(_word(revealed), _word(accused), *rest)


@dataclass(frozen=True, slots=True)
class JuryView:
    """The jury of a task, as the board has it (IAuditBoard.juryOf): `claimant` is the number of the seat, or look,
    whose claim it is to judge. Its draw is `pending` until it is executed. Bit i of `yes` and `no` is the vote of slot
    i, due by second `until`.
    """

    claimant: int
    pending: bool
    until: int
    yes: int
    no: int

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> JuryView | None:
        """From what `juryOf` returned; None for no jury."""
        claimant, *rest = values
        return cls(claimant - 1, *rest) if claimant else None


@dataclass(frozen=True, slots=True)
class ItemClaim:
    """A claim that an item cannot be fetched, not judged yet (IJuries.Claim). `bond` is a lock number; the objection
    names a chunk by `tensor` and `walk`, for the jurors to open by second `until`, 0 without an objection. Bit i of
    `opened` is slot i.
    """

    account: str
    bond: int
    seat: int
    item: int
    until: int
    tensor: int
    walk: int
    opened: int

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> ItemClaim | None:
        """From what `claimOf` returned; None for no claim."""
        account, *rest = values
        found = cls(to_checksum_address(account), *rest)
        return None if found.account == NOBODY else found


def _word(value: bytes) -> bytes | None:
    """A word of which zero stands for none."""
    return bytes(value) if any(value) else None


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock of the vault."""

    owner: str
    module: str
    remaining: int

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> Lock:
        """From what `lockOf` returned."""
        owner, module, remaining = values
        return cls(to_checksum_address(owner), to_checksum_address(module), remaining)


@dataclass(frozen=True, slots=True)
class GameState:
    """A game as the contract keeps it (IDisputeGame.Game); `game_view` adds what the events tell. Times are seconds."""

    game: int
    task: int
    challenger: str
    phase: Phase
    verdict: Verdict
    depth: int
    demands: int
    demand_open: int
    segment: int
    step: int
    segment_size: int
    deadline: int
    solver_spent: int
    challenger_spent: int
    segment_root: bytes
    claim: bytes
    program: bytes
    head: bytes
    demand_hash: bytes
    selection: bytes
    bond: int
    deposit: int

    @classmethod
    def from_abi(cls, game: int, values: tuple[Any, ...]) -> GameState:
        """From what `gameOf(game)` returned."""
        task, challenger, phase, verdict, *rest = values
        return cls(game, task, to_checksum_address(challenger), Phase(phase), Verdict(verdict), *rest)

    @property
    def waits(self) -> bool:
        """Whether it waits for an earlier game to be dismissed: no clock runs, and the challenger cannot move."""
        return self.deadline == NEVER


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a task (IDisputeGame.Claim). `posted_at` is 0 until the solver posts it."""

    root: bytes
    program: bytes
    context: bytes
    size: int
    posted_at: int
    task: int

    def posted(self, game: GameState) -> bytes | None:
        """The root as a game sees it; None while it is due, and if it was posted after the solver's last second
        there.
        """
        late = self.posted_at > game.deadline and game.phase is not Phase.CLOSED
        return self.root if self.posted_at and not late else None
