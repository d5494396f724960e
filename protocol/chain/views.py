"""The contracts' return values: one dataclass per struct, fields in ABI order, enums and addresses typed."""

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
"""The deadline of a game that waits, and the end of challenges while a requested draw is not executed."""
BOUND: Final = (1 << 40) - 1
"""`free_since` of a registration that has a seat or is suspended."""


class TaskStatus(IntEnum):
    """Status of a task (ITaskMarket.Status)."""

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
        """Whether the task has ended, so that its status no longer changes. After that, seats may still be
        released, or be paid from a convicted stake.
        """
        return TaskStatus.SETTLED <= self <= TaskStatus.SLASHED

    @property
    def can_be_challenged(self) -> bool:
        """Whether the task's status allows new games. They can be opened until `challenge_until` or
        `Looks.answers_until`, whichever is later.
        """
        return self in (TaskStatus.SUBMITTED, TaskStatus.UNPAID)


@dataclass(frozen=True, slots=True)
class TaskView:
    """The variable state of a task (ITaskMarket.Task). Times are seconds since 1970.

    `bidder` made the best bid; bids have moved the end of bidding by `overtime` seconds. `escrow` and `stake`
    are the ids of locks in the vault. The lock `stake` holds the best bidder's delay penalty, and after the
    submission the solver's stake. `challenge_until` is NEVER while a requested draw is not executed.
    `owes_draw` is whether the escrow still owes the fee of a requested draw.
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
        """Convert the result of `taskOf(task)`."""
        submitter, escrow, stake, bidder, status, *rest = values
        parties = to_checksum_address(submitter), to_checksum_address(bidder)
        return cls(task, parties[0], escrow, stake, parties[1], TaskStatus(status), *rest)

    @property
    def solver(self) -> str:
        """The best bidder once bidding is over, NOBODY before."""
        return NOBODY if self.status <= TaskStatus.BIDDING else self.bidder

    def posted_at(self, bidding_period: int) -> int:
        """When the task was posted, given the `bidding_period` of its terms. Once the blocks up to this time
        are final, the task's number can no longer become another task's.
        """
        return self.bids_until - self.overtime - bidding_period


@dataclass(frozen=True, slots=True)
class Offer:
    """The limits within which a registered account accepts tasks (Seats.sol). If a task exceeds a maximum or
    pays less than a minimum, its draws skip the account.
    """

    speed: int
    """Maximum operations per second that a task may require (`Terms.least_speed`). The account has already
    subtracted its safety margin.
    """
    state_bytes: int
    """Maximum bytes of a state."""
    lock: int
    """Maximum token units of the account's stake that a seat may lock."""
    fee: int
    """Minimum fee of a seat for each 10^9 operations, in token units."""
    seat_fee: int
    """Minimum fee of a seat, and of a look if the task has looks, regardless of the number of operations, in
    token units.
    """
    period: int
    """Maximum seconds for which a task's terms may bind a seat (`Terms.seat_period`). Redraws, claims and
    games can bind it longer.
    """

    def unmet(self, terms: Terms) -> tuple[str, ...]:
        """Names of the offer's fields that exclude a task with these terms, by the audit board's rules. If
        there are none, a draw can find the account.
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
    """An account's registration (Seats.sol). Its stake is 2^level units, in the vault's lock `lock`. The
    account can be drawn by rounds that were fixed after `free_since`. Times are seconds since 1970;
    `resigned_at` is 0 if the account has not resigned.
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
        """Convert the result of `registrationOf`."""
        account, resigned_at, free_since, level, suspended, offer, lock = values
        return cls(
            to_checksum_address(account), resigned_at, free_since, level, suspended, Offer(*offer), lock
        )

    @property
    def is_bound(self) -> bool:
        """Whether the account has a seat or is suspended, so that no draw finds it."""
        return self.free_since == BOUND


@dataclass(frozen=True, slots=True)
class Seat:
    """A seat, look or juror of a task (Seats.sol), by its number. `account` is NOBODY if nobody was found,
    if its account was silent and the next draw is not executed yet, or if the seat's salt was shown. `until`
    is the last second for the attestation; an empty seat can be drawn again afterwards. `registration` is the
    number of the account's registration. `caught` is whether the seat's lock is lost, because of a look or a
    missing opening. A caught account is paid no fee.
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
        """Convert the result of `seatOf`, or one element of the result of `seatsOf` or `looksOf`."""
        account, *rest = values
        return cls(number, to_checksum_address(account), *rest)

    @property
    def is_empty(self) -> bool:
        """Whether no account has the seat."""
        return self.account == NOBODY


@dataclass(frozen=True, slots=True)
class AuditView:
    """The state of a task's draws (Seats.sol). Times are seconds since 1970, and 0 until the event happens.

    `pool` is the number of registrations of each level when the task was posted. `round` is the beacon round
    of the last requested draw; `pending` is whether that draw is still to be executed. The first draw was
    executed at `drawn_at`, and its `seed` determines the segments of all seats. `until` is the last second to
    attest or vote after the latest draw, or to attest after the latest verdict of a jury. `escrow_draws` is
    the number of draws paid by the escrow. `purse` is the id of the lock that pays the next draw of seats; 0
    if there is none. That lock was made from the stake of a seat's account when the seat's salt was shown.
    `informed_at` is when a seat's salt was last shown or a jury last ended.

    `level` is the level of the latest requested looks (0 if there were none), and `look_draws` is the number
    of draws of this level. `looks` is the number of looks picked on all levels, and `picked_at` is when the
    last of them was picked. Bit i of `looking` is set if look i of this level is awaited. Bit i of `looked`
    is set if look i of this level has attested; until the level's first draw is executed, the bit is about
    look i of the level below. `claimant` is the number of the seat or look whose claim a jury is to judge,
    plus 1; 0 if there is none. `audited` is whether nothing is awaited any more.
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
        """Convert the result of `auditOf`."""
        pool, *rest = values
        return cls(tuple(pool), *rest)


@dataclass(frozen=True, slots=True)
class PendingDraw:
    """A requested draw (Seats.sol), an entry of the board's queue. It uses the beacon's `round`, which was
    fixed at `fixed_at`. `level` is 0 for seats, 1 to 4 for looks of that level, 5 for a jury. `seats` has a
    bit for each seat or slot to draw; 0 means that the draw picks the slots of the looks. `purse` is the
    number of the lock that pays for the draw; 0 if the task's escrow pays. `number` is the draw's number
    among the draws of its task, counted from 1.
    """

    task: int
    seats: int
    round: int
    fixed_at: int
    purse: int
    level: int
    number: int


@dataclass(frozen=True, slots=True)
class LookView:
    """The state of a look (ILooks). `revealed` is the hash of the reveal of the seat that the look checks
    (`protocol.dispute.keys.revealed_word`); None before the reveal. `accused` is the hash of the open
    accusation (`accusation_word`); None if there is none. The answer is due by `until`, and the accusation's
    bond is in lock `lock`. `game` is the game in which the accused contests the accusation; 0 if there is
    none. `accusations` is the number of accusations so far. `dropped` is whether the look has dropped a game;
    it cannot drop another.
    """

    revealed: bytes | None
    accused: bytes | None
    until: int
    lock: int
    game: int
    accusations: int
    dropped: bool

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> LookView:
        """Convert the result of `lookOf`."""
        revealed, accused, *rest = values
        return cls(_word(revealed), _word(accused), *rest)


@dataclass(frozen=True, slots=True)
class JuryView:
    """The jury of a task (IAuditBoard.juryOf). `claimant` is the number of the seat or look whose claim the
    jury judges. `pending` is whether the jury's draw is still to be executed. `until` is the last second for
    votes, since 1970. Bit i of `yes` or `no` is set if the juror in slot i voted yes or no.
    """

    claimant: int
    pending: bool
    until: int
    yes: int
    no: int

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> JuryView | None:
        """Convert the result of `juryOf`; None if there is no jury."""
        claimant, *rest = values
        return cls(claimant - 1, *rest) if claimant else None


@dataclass(frozen=True, slots=True)
class ItemClaim:
    """A claim, not yet judged, that an item cannot be fetched (IJuries.Claim). `bond` is the id of a lock. An
    objection names a chunk by `tensor` and `walk`. `until` is the last second, since 1970, in which jurors
    can open that chunk. These three are 0 without an objection. Bit i of `opened` is set if the juror in slot
    i has opened the chunk.
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
        """Convert the result of `claimOf`; None if there is no claim."""
        account, *rest = values
        found = cls(to_checksum_address(account), *rest)
        return None if found.account == NOBODY else found


def _word(value: bytes) -> bytes | None:
    """The word, or None if it is zero."""
    return bytes(value) if any(value) else None


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock of the vault."""

    owner: str
    module: str
    remaining: int

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> Lock:
        """Convert the result of `lockOf`."""
        owner, module, remaining = values
        return cls(to_checksum_address(owner), to_checksum_address(module), remaining)


@dataclass(frozen=True, slots=True)
class GameState:
    """The state of a game in the contract (IDisputeGame.Game). `game_view` adds information from events.
    Times are seconds.
    """

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
        """Convert the result of `gameOf(game)`."""
        task, challenger, phase, verdict, *rest = values
        return cls(game, task, to_checksum_address(challenger), Phase(phase), Verdict(verdict), *rest)

    def droppable_until(self, game_time: int, move_time: int) -> int:
        """Last second, since 1970, in which a looker can drop this game, which asked for the step tree. It
        must be the looker's turn. The looker's turns in the game may together take `move_time` seconds, or
        `game_time` seconds (the looker's clock) if that is less. Both times are those of the terms.
        """
        return self.deadline - game_time + min(game_time, move_time)

    @property
    def waits(self) -> bool:
        """Whether the game waits until an earlier one is dismissed: no clock runs, and the challenger cannot
        move.
        """
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
        """The root as `game` sees it; None if the solver has not posted it. While `game` is open, the root is
        also None if it was posted after the game's deadline.
        """
        late = self.posted_at > game.deadline and game.phase is not Phase.CLOSED
        return self.root if self.posted_at and not late else None
