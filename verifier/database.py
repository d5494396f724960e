"""What a verifier must remember across a crash (SQLite, WAL): what it has digested, attested and challenged,
what it holds, and the states, roots and other parties' salts that it will need.

Tasks, seats and games are on the chain, and the journal of `protocol.chain` knows what was sent; this
database stores the rest. Every write is on disk when the method returns. The bytes of a state are stored
elsewhere as blobs, before the state's row is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from protocol.node.database import Identity, NodeDatabase
from verifier.errors import TwoDigests
from verifier.migrations import MIGRATIONS

_SCHEMA = """
CREATE TABLE finished (task INTEGER PRIMARY KEY) STRICT;
CREATE TABLE checked (
    task INTEGER NOT NULL, segment INTEGER NOT NULL, root BLOB NOT NULL, PRIMARY KEY (task, segment)
) STRICT, WITHOUT ROWID;
CREATE TABLE digests (
    task INTEGER NOT NULL, salt_hash BLOB NOT NULL, segment INTEGER NOT NULL, root BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (task, salt_hash, segment)
) STRICT, WITHOUT ROWID;
CREATE TABLE steps (
    task INTEGER NOT NULL, salt_hash BLOB NOT NULL, segment INTEGER NOT NULL, roots BLOB NOT NULL,
    PRIMARY KEY (task, salt_hash, segment)
) STRICT, WITHOUT ROWID;
CREATE TABLE commitments (task INTEGER PRIMARY KEY, root BLOB NOT NULL, roots BLOB NOT NULL) STRICT;
CREATE TABLE attested (
    task INTEGER NOT NULL, seat INTEGER NOT NULL, salt_hash BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (task, salt_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE salts (
    task INTEGER NOT NULL, seat INTEGER NOT NULL, salt BLOB NOT NULL, PRIMARY KEY (task, seat, salt)
) STRICT, WITHOUT ROWID;
CREATE TABLE held (task INTEGER PRIMARY KEY, until INTEGER NOT NULL) STRICT;
CREATE TABLE challenges (
    task INTEGER NOT NULL, seat INTEGER NOT NULL, account TEXT NOT NULL, segment INTEGER, salt BLOB NOT NULL,
    roots BLOB NOT NULL, opening_until INTEGER, game INTEGER, outcome TEXT, asks INTEGER NOT NULL,
    PRIMARY KEY (task, seat)
) STRICT, WITHOUT ROWID;
CREATE TABLE claimed (task INTEGER NOT NULL, seat INTEGER NOT NULL, PRIMARY KEY (task, seat)) STRICT, WITHOUT ROWID;
CREATE TABLE states (
    task INTEGER NOT NULL, number INTEGER NOT NULL, own INTEGER NOT NULL, root BLOB NOT NULL, manifest TEXT NOT NULL,
    PRIMARY KEY (task, number, own)
) STRICT, WITHOUT ROWID;
"""


UNTIL_OVER = (1 << 63) - 1
"""The value of `until` in `hold` for a result that is held until its task is over. The final time is set then."""
_OF_OPEN_TASKS = ("states", "checked", "digests", "steps", "commitments", "salts")
COMMITTING = 0
"""Value of `Challenge.opening_until` while the commitment may be on its way: from just before it is sent
until its block is known. During this time its bond counts as being at stake.
"""


@dataclass(frozen=True, slots=True)
class Challenge:
    """The challenge of one account, and how far it has come. `segment` is the false segment: a replay from
    the state before this segment does not give the state that the solver committed to for the end of the
    segment. `segment` is None for a blind challenge, whose game must find the false segment.

    `seat` is the seat or look that the account had when the difference was found, or NO_SEAT; the seat may
    have been drawn again since. `roots` are the solver's r_0 … concatenated, empty for a blind challenge.
    `opening_until` is the last second in which the commitment can be opened; None before the commitment,
    `COMMITTING` while it may be on its way. `game` is None until the game is open, `outcome` is None until
    the challenge is over.

    If `asks` is set, the challenge belongs to a look, and `segment` is the look's segment. Such a challenge
    only asks for the solver's step tree of this segment, which the look needs to accuse a seat. Its game
    obtains this tree, and continues against the solver only if the tree is false.
    """

    task: int
    seat: int
    account: str
    segment: int | None
    salt: bytes
    roots: bytes
    opening_until: int | None = None
    game: int | None = None
    outcome: str | None = None
    asks: bool = False

    @property
    def key(self) -> tuple[int, int]:
        """Task and seat, which together identify a challenge."""
        return self.task, self.seat

    @property
    def is_committed(self) -> bool:
        """Whether the commitment is made: its bond is or was locked, and the last second for opening it is known."""
        return self.opening_until not in (None, COMMITTING)

    def checkpoint_roots(self) -> list[bytes]:
        """The solver's r_0, r_1, …; none for a blind challenge."""
        return _roots(self.roots)


@dataclass(frozen=True, slots=True)
class StateRow:
    """The kept state of checkpoint `number`: the state that was computed here if `own`, otherwise the state
    that the solver served.
    """

    number: int
    own: bool
    root: bytes
    manifest: str


class Database(NodeDatabase):
    """The verifier's SQLite file."""

    PARTY = "verifier"
    VERSION = 7
    APPLICATION = 0x41735631  # "AsV1"
    SCHEMA = _SCHEMA
    MIGRATIONS = MIGRATIONS

    def __init__(self, path: Path, identity: Identity) -> None:
        super().__init__(path, identity)
        # Every look needs these, so they are kept in memory.
        self._finished = {task for (task,) in self._execute("SELECT task FROM finished")}

    def is_finished(self, task: int) -> bool:
        """Whether nothing more can happen in a task. Reads nothing from disk."""
        return task in self._finished

    def finish(self, *tasks: int) -> None:
        """Record that these tasks are never looked at again, and drop the rows that only open tasks need."""
        with self._lock, self._transaction():
            for task in tasks:
                self._execute("INSERT OR IGNORE INTO finished VALUES (?)", (task,))
                for table in _OF_OPEN_TASKS:
                    self._execute(f"DELETE FROM {table} WHERE task = ?", (task,))
        self._finished.update(tasks)

    def knows(self, task: int) -> bool:
        """Whether this verifier holds a result of the task, or has challenged or attested the task."""
        return any(
            self._execute(f"SELECT 1 FROM {table} WHERE task = ? LIMIT 1", (task,))
            for table in ("held", "challenges", "attested")
        )

    def checked(self, task: int, root: bytes) -> set[int]:
        """The segments whose replay gave the state that the solver committed to. `root` is the root of the
        commitment's segment tree.
        """
        rows = self._execute("SELECT segment FROM checked WHERE task = ? AND root = ?", (task, root))
        return {segment for (segment,) in rows}

    def check(self, task: int, segment: int, root: bytes) -> None:
        """Record that the replay of a segment gave the state that the solver committed to."""
        self._execute("INSERT OR REPLACE INTO checked VALUES (?, ?, ?)", (task, segment, root))

    def digest(self, task: int, salt_hash: bytes, segment: int, root: bytes) -> bytes | None:
        """The digest of a segment; None if we have none. `salt_hash` is the hash of the salt under which the
        segment was digested: the salt of one of our seats or looks, or the salt that the target of one of our
        looks has revealed. `root` is the root of the segment tree. If `segment` is the number that stands for
        the result (`findings.Committed`), the digest is that of the result.
        """
        found = self._execute(
            "SELECT digest FROM digests WHERE task = ? AND salt_hash = ? AND segment = ? AND root = ?",
            (task, salt_hash, segment, root),
        )
        return found[0][0] if found else None

    def digested(self, task: int, salt_hash: bytes, root: bytes) -> set[int]:
        """Segments that have a digest under a salt."""
        rows = self._execute(
            "SELECT segment FROM digests WHERE task = ? AND salt_hash = ? AND root = ?",
            (task, salt_hash, root),
        )
        return {segment for (segment,) in rows}

    def put_digest(self, task: int, salt_hash: bytes, segment: int, root: bytes, digest: bytes) -> None:
        """Record a segment's digest under a salt."""
        self._execute(
            "INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?, ?)", (task, salt_hash, segment, root, digest)
        )

    def steps(self, task: int, salt_hash: bytes, segment: int) -> list[bytes]:
        """Roots of a segment's states s_0 … s_C under a salt; empty if they are not kept. The segment's
        digest under this salt covers these roots.
        """
        rows = self._execute(
            "SELECT roots FROM steps WHERE task = ? AND salt_hash = ? AND segment = ?",
            (task, salt_hash, segment),
        )
        return _roots(rows[0][0]) if rows else []

    def put_steps(self, task: int, salt_hash: bytes, segment: int, roots: Sequence[bytes]) -> None:
        """Keep the roots, 32 bytes each, of a segment's states s_0 … s_C under a salt. The roots come from
        the replay that computed the segment's digest.
        """
        self._execute(
            "INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", (task, salt_hash, segment, b"".join(roots))
        )

    def commitment(self, task: int, root: bytes) -> list[bytes]:
        """The solver's r_0, r_1, … under the root of a segment tree, as served earlier; empty if they were
        not served.
        """
        rows = self._execute("SELECT roots FROM commitments WHERE task = ? AND root = ?", (task, root))
        return _roots(rows[0][0]) if rows else []

    def put_commitment(self, task: int, root: bytes, roots: Sequence[bytes]) -> None:
        """Keep the roots, 32 bytes each, of a task's latest commitment."""
        self._execute("INSERT OR REPLACE INTO commitments VALUES (?, ?, ?)", (task, root, b"".join(roots)))

    def attested(self, task: int, salt_hash: bytes) -> bytes | None:
        """The digest that a seat has attested under its salt, or is about to attest; None if there is none."""
        found = self._execute(
            "SELECT digest FROM attested WHERE task = ? AND salt_hash = ?", (task, salt_hash)
        )
        return found[0][0] if found else None

    def put_attested(self, task: int, seat: int, salt_hash: bytes, digest: bytes) -> None:
        """Record the digest that a seat is about to attest. Raises TwoDigests if a different digest was
        already noted for this task and salt.
        """
        with self._transaction():
            before = self.attested(task, salt_hash)
            if before is None:
                self._execute("INSERT INTO attested VALUES (?, ?, ?, ?)", (task, seat, salt_hash, digest))
            elif before != digest:
                raise TwoDigests(
                    f"task {task}, seat {seat}",
                    expected=f"the digest attested before, {before.hex()}",
                    got=digest.hex(),
                    remedy="replay with one release on sound hardware before attesting anything more",
                )

    def salts(self, task: int, seat: int) -> list[bytes]:
        """Salts that were offered for another party's seat."""
        rows = self._execute("SELECT salt FROM salts WHERE task = ? AND seat = ?", (task, seat))
        return [salt for (salt,) in rows]

    def count_salts(self) -> int:
        """The number of offered salts for all seats."""
        ((count,),) = self._execute("SELECT count(*) FROM salts")
        return int(count)

    def put_salt(self, task: int, seat: int, salt: bytes) -> None:
        """Keep a salt that was offered."""
        self._execute("INSERT OR IGNORE INTO salts VALUES (?, ?, ?)", (task, seat, salt))

    def drop_salt(self, task: int, seat: int, salt: bytes) -> None:
        """Forget a salt that was shown to the chain, or that matches no attestation."""
        self._execute("DELETE FROM salts WHERE task = ? AND seat = ? AND salt = ?", (task, seat, salt))

    def hold(self, task: int, until: int) -> None:
        """Record until when, in seconds of the chain's time, a task's result is held."""
        self._execute("INSERT OR REPLACE INTO held VALUES (?, ?)", (task, until))

    def is_held(self, task: int) -> bool:
        """Whether a task's result is held."""
        return bool(self._execute("SELECT 1 FROM held WHERE task = ?", (task,)))

    def held_before(self, now: int) -> list[int]:
        """Tasks whose results need not be held any more."""
        return [task for (task,) in self._execute("SELECT task FROM held WHERE until < ?", (now,))]

    def held_after_end(self) -> list[int]:
        """Finished tasks whose results are held, in the order in which the results are to be released."""
        rows = self._execute("SELECT task FROM held WHERE until < ? ORDER BY until, task", (UNTIL_OVER,))
        return [task for (task,) in rows]

    def let_go(self, task: int) -> None:
        """Record that a task's result is not held any more."""
        self._execute("DELETE FROM held WHERE task = ?", (task,))

    def open_challenges(self) -> list[Challenge]:
        """Challenges that are not over, ordered by task and seat."""
        rows = self._execute("SELECT * FROM challenges WHERE outcome IS NULL ORDER BY task, seat")
        return [_challenge(row) for row in rows]

    def challenges(self, task: int) -> list[Challenge]:
        """The challenges against a task's solver, ordered by seat. Challenges that only ask are left out."""
        return [row for row in self.all_challenges(task) if not row.asks]

    def all_challenges(self, task: int) -> list[Challenge]:
        """All challenges of a task, including those that only ask."""
        rows = self._execute("SELECT * FROM challenges WHERE task = ? ORDER BY seat", (task,))
        return [_challenge(row) for row in rows]

    def challenge(self, task: int, seat: int) -> Challenge | None:
        """The challenge of a task, or None. `seat` is the number of a seat or look, or NO_SEAT."""
        return next((row for row in self.all_challenges(task) if row.seat == seat), None)

    def put_challenge(self, challenge: Challenge) -> None:
        """Record a challenge before any of its transactions is sent. If the challenge's seat has a finished
        challenge that only asked, that one is deleted first.

        The new challenge is not noted if the seat still has a challenge, even one that only asks, or if the
        account already has a challenge on this task that does more than ask.
        """
        self._execute(
            "DELETE FROM challenges WHERE task = ? AND seat = ? AND asks AND outcome IS NOT NULL",
            challenge.key,
        )
        self._execute(
            "INSERT OR IGNORE INTO challenges (task, seat, account, segment, salt, roots, asks) "
            "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 "
            "WHERE NOT EXISTS (SELECT 1 FROM challenges WHERE task = ?1 AND account = ?3 AND NOT asks)",
            (
                challenge.task,
                challenge.seat,
                challenge.account,
                challenge.segment,
                challenge.salt,
                challenge.roots,
                challenge.asks,
            ),
        )

    def update_challenge(
        self,
        key: tuple[int, int],
        *,
        opening_until: int | None = None,
        game: int | None = None,
        outcome: str | None = None,
    ) -> None:
        """Record the progress of the challenge of a task and seat. None leaves a field unchanged."""
        self._execute(
            "UPDATE challenges SET opening_until = coalesce(?, opening_until), game = coalesce(?, game), "
            "outcome = coalesce(?, outcome) WHERE task = ? AND seat = ?",
            (opening_until, game, outcome, *key),
        )

    def begin_again(self, key: tuple[int, int]) -> None:
        """Reset a challenge that is not over, because its commitment was refused or because a re-organisation
        removed its events. Its transactions are then looked up again.
        """
        self._execute(
            "UPDATE challenges SET opening_until = NULL, game = NULL "
            "WHERE task = ? AND seat = ? AND outcome IS NULL",
            key,
        )

    def reopen_challenge(self, key: tuple[int, int]) -> None:
        """Forget a challenge's outcome because a re-organisation removed it; the challenge goes on."""
        self._execute("UPDATE challenges SET outcome = NULL WHERE task = ? AND seat = ?", key)

    def turn_on_solver(self, asking: Challenge) -> None:
        """Let a challenge that only asked for the solver's step tree continue against the solver, because
        that tree is false. If the challenge was not noted before, it is noted now.
        """
        with self._transaction():
            self.put_challenge(replace(asking, asks=False))
            self._execute(
                "UPDATE challenges SET asks = FALSE WHERE task = ? AND seat = ? AND outcome IS NULL",
                asking.key,
            )

    def renew_challenge(self, key: tuple[int, int], salt: bytes) -> None:
        """Start a challenge again with another salt, because its commitment was not opened in time and a
        commitment can be used only once.
        """
        self._execute(
            "UPDATE challenges SET salt = ?, opening_until = NULL WHERE task = ? AND seat = ? AND game IS NULL",
            (salt, *key),
        )

    def is_claimed(self, task: int, seat: int) -> bool:
        """Whether nothing more is owed to a seat of a convicted task: its claim was collected or refused, or
        the seat had no claim.
        """
        return bool(self._execute("SELECT 1 FROM claimed WHERE task = ? AND seat = ?", (task, seat)))

    def put_claimed(self, task: int, seat: int) -> None:
        """Record that nothing more is owed to a seat of a convicted task."""
        self._execute("INSERT OR IGNORE INTO claimed VALUES (?, ?)", (task, seat))

    def states(self, task: int, own: bool) -> list[StateRow]:
        """The kept states of a task, ordered by number. If `own`, these are the states computed here,
        otherwise the states that were served.
        """
        rows = self._execute(
            "SELECT number, own, root, manifest FROM states WHERE task = ? AND own = ? ORDER BY number",
            (task, own),
        )
        return [StateRow(number, bool(own), root, manifest) for number, own, root, manifest in rows]

    def state(self, task: int, number: int, root: bytes) -> StateRow | None:
        """The kept state of checkpoint `number` with this root, preferably one that was computed here."""
        rows = self._execute(
            "SELECT own, manifest FROM states WHERE task = ? AND number = ? AND root = ? ORDER BY own DESC",
            (task, number, root),
        )
        return StateRow(number, bool(rows[0][0]), root, rows[0][1]) if rows else None

    def own_segments(self, task: int) -> int:
        """The number of segments of a task that are complete in our own run, which begins at checkpoint 0."""
        ((count,),) = self._execute(
            "SELECT count(*) FROM states WHERE task = ? AND own AND number > 0", (task,)
        )
        return int(count)

    def own_run(self, task: int) -> list[StateRow]:
        """Our own run: checkpoints 0, 1, … up to the first that is missing. An earlier release could leave
        such a gap.
        """
        rows = self.states(task, own=True)
        return [row for position, row in enumerate(rows) if row.number == position]

    def put_state(self, task: int, row: StateRow) -> None:
        """Record a state whose blobs are on disk."""
        self._execute(
            "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?)",
            (task, row.number, row.own, row.root, row.manifest),
        )

    def put_next(self, task: int, before: StateRow, row: StateRow) -> bool:
        """Record `row`, a state of our own run that was computed from the state `before`, and return True. If
        `before` was dropped or replaced meanwhile, notes nothing and returns False, because our own run may
        have no gaps.
        """
        found = self._execute(
            "INSERT OR REPLACE INTO states SELECT ?1, ?2, TRUE, ?3, ?4 WHERE EXISTS "
            "(SELECT 1 FROM states WHERE task = ?1 AND number = ?5 AND own AND root = ?6) RETURNING number",
            (task, row.number, row.root, row.manifest, before.number, before.root),
        )
        return bool(found)

    def drop_state(self, task: int, row: StateRow) -> None:
        """Forget a kept state. Our own run may have no gaps, so forgetting one of its states also forgets
        those after it.
        """
        self._execute(
            "DELETE FROM states WHERE task = ? AND own = ? AND (number = ? OR own AND number > ?)",
            (task, row.own, row.number, row.number),
        )


def _roots(joined: bytes) -> list[bytes]:
    return [joined[at : at + 32] for at in range(0, len(joined), 32)]


def _challenge(row: tuple[Any, ...]) -> Challenge:
    task, seat, account, segment, salt, roots, until, game, outcome, asks = row
    return Challenge(task, seat, account, segment, salt, roots, until, game, outcome, bool(asks))
