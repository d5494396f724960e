"""Runs in the tree of an earlier commit: fills a solver's database by that commit's methods, prints what they read."""

import json
import sys
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
known = {
    "version": Database.VERSION,
    "tasks": [[row.task, row.stage.value, row.note, row.sent] for row in database.tasks()],
    "checkpoints": {
        str(row.task): [[one.number, one.manifest, one.root.hex()] for one in database.checkpoints(row.task)]
        for row in database.tasks()
    },
}
database.close()
print(json.dumps(known))
