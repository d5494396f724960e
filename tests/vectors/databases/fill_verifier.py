"""Runs in the tree of an earlier commit. Fills a verifier's database by that commit's methods, and prints
what these methods read from it.

Roots and salts are one byte repeated 32 times. Records that a format lacks are left out.
"""

import json
import sys
from pathlib import Path

import verifier.database as module

try:
    from protocol.node.database import Identity
except ImportError:
    from protocol.runtime.database import Identity  # until ba4da3a3

A, B, S, T = (bytes([byte]) * 32 for byte in (0xA1, 0xB2, 0x51, 0x52))
HASH = bytes([0x4A]) * 32
version = module.Database.VERSION
database = module.Database(Path(sys.argv[1]), Identity("0xchain", "0xmarket", "0xaccount"))
noun = "challenge" if hasattr(module, "Challenge") else "accusation"
made = getattr(module, noun.capitalize())
put = database.put_challenge if noun == "challenge" else database.accuse
update = getattr(database, f"update_{noun}")
until = "reclaimable" if version < 3 else "opening_until"


def challenge(task, segment, salt, roots, seat, asks=False, **states):
    """Record a challenge and its state."""
    mine = () if version < 3 else (seat, "0xaccount")
    put(made(task, *mine, segment, salt, roots, **({"asks": True} if asks else {})))
    for name, value in states.items():
        update(task if version < 3 else (task, seat), **{name: value})


# Task 3: its segment 2 is replayed, its seat 1 attested. Task 5 is over.
if version < 4:
    database.put_steps(3, 2, B, A)
    database.put_attested(3, 1, A)
else:
    database.check(3, 2, B)
    database.put_digest(3, HASH, 2, B, A)
    database.put_attested(3, 1, HASH, A)
if version >= 6:
    database.put_steps(3, HASH, 2, [A, B])
    database.put_commitment(3, B, [A, B, A])
database.finish(5)
# Others' salts for seat 0 of task 3: one that was shown, if the format records that, and one that was not.
if hasattr(database, "put_salt"):
    database.put_salt(3, 0, S)
    database.put_salt(3, 0, T)
if hasattr(database, "put_informed"):
    database.put_informed(3, 0, T)
if hasattr(database, "hold"):
    database.hold(3, (1 << 63) - 1)
    database.hold(5, 1_800_000_000)
if hasattr(database, "put_claimed"):
    database.put_claimed(10, 1)
# An open game; a blind commitment on its way; one that can be opened; one only recorded; one that is over.
challenge(4, 2, S, A + B, 3, **{until: 1_700_000_101}, game=7)
challenge(6, None, T, b"", 0, **{until: 0})
challenge(7, 1, A, A + B + A, 1, **{until: 1_700_000_555})
challenge(8, 3, B, A, 2)
challenge(9, 1, S, A + B, 0, **{until: 1_700_000_001}, game=8, outcome="solver_false")
if version >= 5:
    challenge(11, 2, S, A + B, 35, asks=True)
for number, own in ((0, False), (1, False), (0, True), (1, True), (2, True)):
    database.put_state(4, module.StateRow(number, own, A if number else B, f"{number}{own:d}" * 32))


def known_challenge(row):
    """A challenge as JSON, with the field names of the format."""
    fields = ("task", "seat", "account", "segment", until, "game", "outcome", "asks")
    found = {name: getattr(row, name) for name in fields if hasattr(row, name)}
    return found | {"salt": row.salt.hex(), "roots": [root.hex() for root in row.checkpoint_roots()]}


def all_of(task):
    """All challenges of a task."""
    if version < 3:
        found = [database.accusation(task)]
    elif version < 5:
        found = database.accusations(task)
    else:
        found = getattr(database, f"all_{noun}s")(task)
    return [row for row in found if row is not None]


known = {
    "version": version,
    "finished": sorted(database.finished()),
    "checked": {B.hex(): sorted(database.checked(3, B)), A.hex(): sorted(database.checked(3, A))},
    "open": [[row.task, getattr(row, "seat", None)] for row in getattr(database, f"open_{noun}s")()],
    "challenges": [known_challenge(row) for task in range(12) for row in all_of(task)],
    "states": [
        [row.number, row.own, row.root.hex(), row.manifest]
        for own in (False, True)
        for row in database.states(4, own)
    ],
    "own_segments": database.own_segments(4),
}
if version >= 4:
    known["digest"] = database.digest(3, HASH, 2, B).hex()
    known["digested"] = sorted(database.digested(3, HASH, B))
    known["attested"] = database.attested(3, HASH).hex()
if version >= 6:
    known["steps"] = [root.hex() for root in database.steps(3, HASH, 2)]
    known["commitment"] = [root.hex() for root in database.commitment(3, B)]
if hasattr(database, "salts"):
    known["salts"] = [salt.hex() for salt in database.salts(3, 0)]
if hasattr(database, "held_before"):
    known["held"] = [task for task in range(12) if database.is_held(task)]
    known["held_before"] = database.held_before(1_800_000_001)
if hasattr(database, "is_claimed"):
    known["claimed"] = [
        [task, seat] for task in range(12) for seat in range(4) if database.is_claimed(task, seat)
    ]
database.close()
print(json.dumps(known))
