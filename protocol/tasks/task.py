"""A task's terms, its deadlines and the time in its games (contracts/src/types/Terms.sol, dispute.md sections 2 and
6).

Pure values: nothing here reads a chain or a bundle. The contract enforces the further bounds of the deployment's
parameters (contracts/src/libraries/TermsCheck.sol); `protocol.tasks.bundles` checks whether the terms fit a bundle.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from math import ceil
from typing import Any, Final

from protocol.dispute.looks import LEVELS, MAX_LOOKS
from protocol.errors import AssayError
from protocol.node.words import duration, tokens

TOKEN: Final = 10**18
"""Units of one token: the test token has 18 decimals, as OpenZeppelin's ERC-20 has by default."""
MAX_SEGMENTS: Final = 1 << 20
MAX_SEGMENT_STEPS: Final = 1 << 16
MAX_THINNING: Final = 64
MAX_TENSORS: Final = 65_535
MAX_SEATS: Final = 32
MAX_SEAT_SEGMENTS: Final = 64
LOOK_LOCK: Final = 4
"""The least lock of a seat, in costs of a game, where there are looks: half of a caught seat's lock pays the looker
for a bond and for the game that obtains the solver's step tree.
"""
MAX_JURORS: Final = 32
JURY_SHARE: Final = 16
"""A jury may take one part in this many of the stake: it refunds the claimant's audit fee and draw fee."""
RATE_OF_ALL: Final = 10_000
"""Hundredths of a percent in the whole: the unit of `look_chance`."""
ESCROW_DRAWS: Final = 8
"""Draws of a task that its escrow pays at most, without those of looks."""
LOOK_DRAWS: Final = LEVELS
"""Further draws that it may pay for looks: the first of each level."""
LINE: Final = 1 << 22
"""Bytes a second that every party's line must carry, 4 MiB: no task may require more (TermsCheck.sol)."""
MAX_BUNDLE_LENGTH: Final = 1_024
MAX_LOCK: Final = (1 << 94) - 1
"""Most token units that one lock of the vault holds."""
HASH_RATE: Final = 300_000_000
"""Bytes a second that a party must be able to hash: a fifth of one core with SHA instructions."""


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
"""Fields of terms that are seconds."""


def shown(field: str, value: object) -> str:
    """A field's value for people: amounts in tokens, periods in words too."""
    if not isinstance(value, int) or isinstance(value, bool):
        return repr(value)
    if field in AMOUNTS:
        return tokens(value)
    if field in PERIODS:
        return f"{value:,} s" + (f" ({duration(value)})" if value >= 60 else "")
    return f"{value:,}"


class TermsError(AssayError, ValueError):
    """Terms that no market takes. `name` is the field at fault."""

    def __init__(self, name: str, expected: str, got: object) -> None:
        super().__init__(
            f"terms, {name}", expected=expected, got=got, remedy="correct this field and post again"
        )
        self.name = name


@dataclass(frozen=True, slots=True)
class Terms:
    """What a submitter asks for, fixed when the task is posted; fields are those of the contract, in its
    order.

    Amounts are token units, periods seconds, roots 32 bytes. Raises TermsError when a number is out of its
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
            # bool is an int to Python, and would be encoded as one.
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
            # Two calls after the attestations: to commit, and to open the commitment. A clock is a second at least.
            "challenge_period": (self.attest_period + 2, u32),
            "clock": (1, u32),
            "replay_allowance": (0, u32),
            "verifiers": (1, MAX_SEATS),
            "segments_per_verifier": (1, min(MAX_SEAT_SEGMENTS, self.segments)),
            "arithmetic": (1, 2**16 - 1),
            "thinning": (1, min(MAX_THINNING, self.segment_steps)),
            # A look is compared with what is revealed.
            "move_time": (1, self.attest_period),
            "look_chance": (0, RATE_OF_ALL if self.seat_segments <= MAX_LOOKS else 0),
            "jurors": (0, MAX_JURORS),
            # Anyone who is silent in a seat loses its fee and pays the next draw.
            "seat_lock": (max(self.seat_fee, LOOK_LOCK * self.game_cost if self.look_chance else 0), u128),
        }

    def abi(self) -> tuple[Any, ...]:
        """The struct as a tuple in ABI order."""
        return astuple(self)

    @classmethod
    def from_abi(cls, values: tuple[Any, ...]) -> Terms:
        """Inverse of `abi`, from what a contract returned."""
        return cls(*values)

    @property
    def steps(self) -> int:
        """Steps of the whole task, K C."""
        return self.segments * self.segment_steps

    @property
    def game_time(self) -> int:
        """Seconds that each side of a game has: a game ends within twice that."""
        return self.clock + self.replay_allowance

    @property
    def seat_fee(self) -> int:
        """What an attested seat is paid: for each of its q segments."""
        return self.audit_fee * self.segments_per_verifier

    @property
    def least_fee(self) -> int:
        """The least pay of a place that binds an account until the task is over: a look's fee, or without looks a
        seat's.
        """
        return self.audit_fee if self.look_chance else self.seat_fee

    @property
    def seat_period(self) -> int:
        """Most seconds from a seat's draw to the task's end if every draw finds accounts, all attest, and nobody
        challenges or claims, without the waits for draws of looks.
        """
        return self.challenge_period + (LEVELS * self.attest_period if self.look_chance else 0)

    @property
    def seat_segments(self) -> int:
        """V q: segments of all seats, and most looks of a task."""
        return self.verifiers * self.segments_per_verifier

    @property
    def owed(self) -> int:
        """Most that a conviction owes out of the stake: the greater reward, cost and fee of every seat and of every
        possible look, and the restitution.
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
        """Operations a second that a seat's account must manage, rounded up: all replays by the end of the
        attestation period, and with looks, which may accuse each segment at the same time, again within a move time.
        """
        return -(-self.seat_operations // (self.move_time if self.look_chance else self.attest_period))

    def escrow(self, draw_fee: int) -> int:
        """What posting locks: the budget, the fees of V seats and of all draws that the escrow may pay; with looks,
        also the fees of V q looks and of the first draw of each level.
        """
        fees, draws = self.verifiers * self.seat_fee, ESCROW_DRAWS
        if self.look_chance:
            fees, draws = 2 * fees, draws + LOOK_DRAWS
        return self.budget + fees + draws * draw_fee


def least_stake(owed: int) -> int:
    """The least S with owed <= S - ceil(S / 4): a quarter of a convicted stake burns, whatever is claimed."""
    return -(-4 * owed // 3)


GAMES_AT_ONCE: Final = 16
"""Games of a task that are played at once; the others wait (contracts/src/dispute/GameState.sol)."""
DEMANDS: Final = 96
"""Demands of one game (contracts/src/dispute/Demands.sol)."""
STEP_TREES: Final = 1
TRACES: Final = 9
"""Frames: of a step and of eight callees."""
SPLITS: Final = 5
"""Depth of a split, enough for 128^5 blocks."""
MOST_MOVES: Final = DEMANDS + STEP_TREES + TRACES + SPLITS
"""Answers that a solver may owe in one game. A challenger makes about as many moves."""
INCLUSION_BLOCKS: Final = 2
"""Blocks until a move is mined: it may just miss the next one."""
SAFETY: Final = 3
"""Multiple of its time that a replay takes on a busy machine; it holds the trace of a step too."""
BEGUN: Final = 2
"""Steps of others that each wait may include: one that runs, and one that began before this one's turn."""
ASSUMED_SPEED: Final = 10**9
"""Scalar operations a second that each side of a game is assumed to manage where terms are derived."""


def replay_seconds(terms: Terms, operations_a_second: float) -> float:
    """Seconds to replay a segment: its operations, and the hashing of a state each step."""
    return replay_seconds_of(
        terms.segment_steps, terms.step_operations, terms.state_bytes, operations_a_second
    )


def replay_allowance(segment_steps: int, step_operations: int, state_bytes: int) -> int:
    """Seconds to replay a segment safely in each of the games that are played at once, rounded up."""
    replay = replay_seconds_of(segment_steps, step_operations, state_bytes, ASSUMED_SPEED)
    return ceil(SAFETY * GAMES_AT_ONCE * replay)


def replay_seconds_of(
    segment_steps: int, step_operations: int, state_bytes: int, operations_a_second: float
) -> float:
    """`replay_seconds` of a segment without terms yet."""
    return (
        segment_steps * step_operations / operations_a_second + state_bytes * (segment_steps + 1) / HASH_RATE
    )
