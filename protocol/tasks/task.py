"""A task's terms, and the limits and times of its games (contracts/src/types/Terms.sol, dispute.md sections 2 and 6).

Pure values: nothing here reads a chain or a bundle. The contract also enforces the bounds of the deployment's
parameters (contracts/src/libraries/TermsCheck.sol). `protocol.tasks.bundles` checks whether the terms fit a bundle.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from math import ceil
from typing import Any, Final

from protocol.dispute.looks import LEVELS, MAX_LOOKS
from protocol.errors import AssayError
from protocol.node.words import duration, tokens

TOKEN: Final = 10**18
"""Units of one token. The test token has 18 decimals, OpenZeppelin's default for ERC-20."""
MAX_SEGMENTS: Final = 1 << 20
MAX_SEGMENT_STEPS: Final = 1 << 16
MAX_THINNING: Final = 64
MAX_TENSORS: Final = 65_535
MAX_SEATS: Final = 32
MAX_SEAT_SEGMENTS: Final = 64
LOOK_LOCK: Final = 4
"""The least lock of a seat if the task has looks, as a multiple of the cost of a game. A looker that catches
a seat gets half of the seat's lock. This half must cover the game that obtains the solver's step tree, and
the bond of the looker's accusation.
"""
MAX_JURORS: Final = 32
JURY_SHARE: Final = 16
"""A jury may take 1 / JURY_SHARE of the stake, to refund the claimant's audit fee and draw fee."""
RATE_OF_ALL: Final = 10_000
"""100 %, in hundredths of a percent. `look_chance` has this unit."""
ESCROW_DRAWS: Final = 8
"""Maximum number of a task's draws for which its escrow pays, not counting draws of looks."""
LOOK_DRAWS: Final = LEVELS
"""Number of draws of looks for which the escrow also pays: the first draw of each level."""
LINE: Final = 1 << 22
"""Bytes a second (4 MiB) that every party's network must carry. No task may require more (TermsCheck.sol)."""
TENSOR_RATE: Final = 1_000
"""Tensors a second that a solver is assumed to serve, however small the tensors are. One core reads eight
times as many from files in the system's cache. The assumption is lower because several parties fetch at once,
and each party spends an eighth of its attestation time on fetching a checkpoint
(`verifier.findings.FETCH_SHARE`).
"""
MAX_BUNDLE_LENGTH: Final = 1_024
MAX_LOCK: Final = (1 << 94) - 1
"""Maximum token units in one lock of the vault."""
HASH_RATE: Final = 300_000_000
"""Bytes a second that a party must be able to hash: a fifth of one core with SHA instructions."""
FILE_RATE: Final = 200
"""Number of files a second that a party's disk is assumed to write. The assumption holds until `solver bench`
has measured the disk. It is rather slow for a solid-state drive. Each file is written with two fsyncs.
"""


AMOUNTS: Final = (
    "budget",
    "stake",
    "restitution",
    "reward",
    "audit_fee",
    "game_cost",
    "delay_penalty",
    "seat_lock",
    "bond",
    "retrain_reward",
)
"""Fields of terms that are amounts of tokens."""
PERIODS: Final = (
    "bidding_period",
    "training_period",
    "challenge_period",
    "attest_period",
    "extension",
    "clock",
    "replay_allowance",
    "move_time",
)
"""Fields of terms that are times in seconds."""


def shown(field: str, value: object) -> str:
    """A field's value for messages: an amount in tokens, or a period in seconds and in words."""
    if not isinstance(value, int) or isinstance(value, bool):
        return repr(value)
    if field in AMOUNTS:
        return tokens(value)
    if field in PERIODS:
        return f"{value:,} s" + (f" ({duration(value)})" if value >= 60 else "")
    return f"{value:,}"


class TermsError(AssayError, ValueError):
    """Terms that no market accepts. `name` is the field at fault."""

    def __init__(self, name: str, expected: str, got: object) -> None:
        super().__init__(
            f"terms, {name}", expected=expected, got=got, remedy="correct this field and post again"
        )
        self.name = name


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a task, which are fixed when it is posted. The fields are those of the contract, in the
    same order.

    Amounts are token units, periods are seconds, roots are 32 bytes. Raises TermsError if a field is out of
    bounds.
    """

    program_id: bytes
    constants_root: bytes
    initial_state: bytes
    bundle_hash: bytes
    constants: int
    state_tensors: int
    segments: int
    segment_steps: int
    step_operations: int
    state_bytes: int
    budget: int
    stake: int
    restitution: int
    reward: int
    audit_fee: int
    game_cost: int
    delay_penalty: int
    bidding_period: int
    training_period: int
    challenge_period: int
    attest_period: int
    extension: int
    clock: int
    replay_allowance: int
    verifiers: int
    segments_per_verifier: int
    arithmetic: int
    thinning: int
    move_time: int
    look_chance: int
    jurors: int
    seat_lock: int
    bond: int
    retrain_reward: int
    bundle: str

    def __post_init__(self) -> None:
        for name in ("program_id", "constants_root", "initial_state", "bundle_hash"):
            value = getattr(self, name)
            if not isinstance(value, bytes) or len(value) != 32 or not any(value):
                raise TermsError(name, "32 bytes, not all zero", value)
        for name, (least, most) in self._bounds().items():
            value = getattr(self, name)
            # In Python a bool is an int, and would be encoded as one.
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                expected = f"a whole number from {shown(name, least)} to {shown(name, most)}"
                raise TermsError(name, expected, shown(name, value))
        if self.thinning & (self.thinning - 1):
            raise TermsError("thinning", "a power of two", self.thinning)
        if not 1 <= len(self.bundle.encode()) <= MAX_BUNDLE_LENGTH:
            raise TermsError(
                "bundle", f"an address of 1 to {MAX_BUNDLE_LENGTH} bytes", repr(self.bundle[:80])
            )

    def _bounds(self) -> dict[str, tuple[int, int]]:
        u32, u64, u128 = 2**32 - 1, 2**64 - 1, 2**128 - 1
        return {
            "constants": (1, MAX_TENSORS),
            "state_tensors": (1, MAX_TENSORS),
            "segments": (1, MAX_SEGMENTS),
            "segment_steps": (1, MAX_SEGMENT_STEPS),
            "step_operations": (1, u64),
            "state_bytes": (1, u64),
            "budget": (1, u128),
            "restitution": (0, self.budget),
            "audit_fee": (0, u128),
            "game_cost": (0, u128),
            "stake": (least_stake(self.owed), MAX_LOCK),
            "reward": (0, self.stake // 8),
            "retrain_reward": (0, self.stake // 8),
            "bond": (0, self.stake // 4),
            "delay_penalty": (0, self.stake),
            "bidding_period": (1, u32),
            "extension": (1, self.bidding_period),
            "training_period": (1, u32),
            "attest_period": (1, u32),
            # Two more seconds for two calls after the attestations: to commit, and to open the commitment.
            "challenge_period": (self.attest_period + 2, u32),
            "clock": (1, u32),
            "replay_allowance": (0, u32),
            "verifiers": (1, MAX_SEATS),
            "segments_per_verifier": (1, min(MAX_SEAT_SEGMENTS, self.segments)),
            "arithmetic": (1, 2**16 - 1),
            "thinning": (1, min(MAX_THINNING, self.segment_steps)),
            # A look's digest is compared with the revealed one.
            "move_time": (1, self.attest_period),
            "look_chance": (0, RATE_OF_ALL if self.seat_segments <= MAX_LOOKS else 0),
            "jurors": (0, MAX_JURORS),
            # A silent seat loses its fee and pays for the next draw.
            "seat_lock": (max(self.seat_fee, LOOK_LOCK * self.game_cost if self.look_chance else 0), u128),
        }

    def abi(self) -> tuple[Any, ...]:
        """The struct as a tuple in ABI order."""
        return astuple(self)

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> Terms:
        """Inverse of `abi`, for a struct that a contract has returned."""
        return cls(*values)

    @property
    def steps(self) -> int:
        """Number of steps of the whole task, K C."""
        return self.segments * self.segment_steps

    @property
    def game_time(self) -> int:
        """Seconds that each side of a game has. A game ends within twice this time."""
        return self.clock + self.replay_allowance

    @property
    def seat_fee(self) -> int:
        """The pay of an attested seat: the audit fee for each of its q segments."""
        return self.audit_fee * self.segments_per_verifier

    @property
    def least_fee(self) -> int:
        """The least fee that a seat or look gets. If the task has looks, this is the fee of a look; if not,
        it is the fee of a seat.
        """
        return self.audit_fee if self.look_chance else self.seat_fee

    @property
    def seat_period(self) -> int:
        """Maximum seconds from a seat's draw to the task's end if every draw finds accounts, all accounts
        attest, and nobody challenges or claims. The delays of draws of looks are not included.
        """
        return self.challenge_period + (LEVELS * self.attest_period if self.look_chance else 0)

    @property
    def seat_segments(self) -> int:
        """V q: the segments of all seats. A task has at most as many looks."""
        return self.verifiers * self.segments_per_verifier

    @property
    def owed(self) -> int:
        """The most that must be paid out of a convicted stake. It is a sum of four parts: the greater of the
        two rewards; for each seat, the cost of a game and the seat's fee; for each possible look, the cost of
        a game and the look's fee; and the restitution.
        """
        reward = max(self.reward, self.retrain_reward)
        looks = self.seat_segments * (self.game_cost + self.audit_fee) if self.look_chance else 0
        return reward + self.verifiers * (self.game_cost + self.seat_fee) + looks + self.restitution

    @property
    def seat_operations(self) -> int:
        """Scalar operations of a seat's replays."""
        return self.step_operations * self.segment_steps * self.segments_per_verifier

    @property
    def least_speed(self) -> int:
        """Operations a second that a seat's account must manage, rounded up. The account must do all replays
        within the attestation period. With looks, it must be able to repeat them within a move time, because
        looks may accuse all segments at the same time.
        """
        return -(-self.seat_operations // (self.move_time if self.look_chance else self.attest_period))

    def escrow(self, draw_fee: int) -> int:
        """The amount that posting locks: the budget, the fees of V seats, and the fees of all draws for which
        the escrow may pay. With looks, also the fees of V q looks and of the first draw of each level.
        """
        fees, draws = self.verifiers * self.seat_fee, ESCROW_DRAWS
        if self.look_chance:
            fees, draws = 2 * fees, draws + LOOK_DRAWS
        return self.budget + fees + draws * draw_fee


def least_stake(owed: int) -> int:
    """The least stake S with owed <= S - ceil(S / 4), because a quarter of a convicted stake always burns."""
    return -(-4 * owed // 3)


GAMES_AT_ONCE: Final = 16
"""Maximum number of a task's games that are played at once; further games wait
(contracts/src/dispute/GameState.sol).
"""
DEMANDS: Final = 96
"""Maximum number of demands in one game (contracts/src/dispute/Demands.sol)."""
STEP_TREES: Final = 1
TRACES: Final = 9
"""Maximum number of traces in one game: those of a step's frame and of eight nested callees."""
SPLITS: Final = 5
"""Maximum number of rounds of splitting, enough for 128^5 blocks."""
MOST_MOVES: Final = DEMANDS + STEP_TREES + TRACES + SPLITS
"""Maximum number of answers that a solver owes in one game. A challenger makes about as many moves."""
INCLUSION_BLOCKS: Final = 2
"""Number of blocks until a move is mined, since the move may just miss the next block."""
SAFETY: Final = 3
"""On a busy machine, a replay together with the trace of a step takes at most this many times as long as a
replay usually takes.
"""
BEGUN: Final = 2
"""Maximum number of steps of other work during one wait for the machine: the step that is running, and one
more that begins before the waiting work gets its turn.
"""
ASSUMED_SPEED: Final = 10**9
"""Scalar operations a second that each side of a game is assumed to manage when terms are derived."""


def replay_seconds(terms: Terms, operations_a_second: float) -> float:
    """Seconds to replay a segment: its operations, and the hashing of each of its states."""
    return replay_seconds_of(
        terms.segment_steps, terms.step_operations, terms.state_bytes, operations_a_second
    )


def replay_allowance(segment_steps: int, step_operations: int, state_bytes: int) -> int:
    """Seconds, rounded up, that safely allow one replay of a segment in each of the games that are played at once."""
    replay = replay_seconds_of(segment_steps, step_operations, state_bytes, ASSUMED_SPEED)
    return ceil(SAFETY * GAMES_AT_ONCE * replay)


def replay_seconds_of(
    segment_steps: int, step_operations: int, state_bytes: int, operations_a_second: float
) -> float:
    """`replay_seconds` for a task that has no terms yet."""
    return (
        segment_steps * step_operations / operations_a_second + state_bytes * (segment_steps + 1) / HASH_RATE
    )
