"""Runs in the tree of an earlier commit. Fills a solver's database by that commit's methods, and prints what
these methods read from it.
"""

import json
import sys
from dataclasses import astuple
from pathlib import Path

from solver.database import CheckpointRow, Database, Stage

try:
    from protocol.node.database import Identity
except ImportError:
    from protocol.runtime.database import Identity  # until ba4da3a3

database = Database(Path(sys.argv[1]), Identity("0xchain", "0xmarket", "0xaccount"))
for task, stage in enumerate(Stage, 1):
    database.put(task, stage, f"because {stage.value}")
    if stage in (Stage.TRAINING, Stage.SUBMITTED, Stage.OVER):
        for number in range(task):
            database.add_checkpoint(
                task, CheckpointRow(number, f"{task}{number}" * 32, bytes([task, number]) * 16)
            )
        database.put_sent(task, task - 1)
if Database.VERSION >= 2:
    from solver.database import Booked
    from solver.ledger import Flow, Kind, Spent

    flows = [
        Flow(100 + n, n, 1_795_000_000 + n, n % 3, kind, 10**19 + n, n % 2, "0x" + f"{n:02x}" * 32)
        for n, kind in enumerate(Kind)
    ]
    spent = [
        Spent(
            "0x" + "ab" * 32, 0, 101, 1_795_000_001, 1, "TaskMarket.bid", True, 106_000, 10**9, 10**19, 0, 5
        ),
        Spent("0x" + "cd" * 32, 1, 102, 1_795_000_002, 0, "StakeVault.deposit", False, 60_000, 7, 9, 3, 0),
    ]
    database.book(flows, spent, Booked(110, 1_795_000_010, 2))
known = {
    "version": Database.VERSION,
    "tasks": [[row.task, row.stage.value, row.note, row.sent] for row in database.tasks()],
    "checkpoints": {
        str(row.task): [[one.number, one.manifest, one.root.hex()] for one in database.checkpoints(row.task)]
        for row in database.tasks()
    },
}
if Database.VERSION >= 2:
    known["flows"] = [[str(value) for value in astuple(one)] for one in database.flows()]
    known["spent"] = [[str(value) for value in astuple(one)] for one in database.spent()]
    known["booked"] = list(astuple(database.booked()))
database.close()
print(json.dumps(known))
