"""Runs in the tree of an earlier commit. Fills a journal by that commit's methods, and prints what these
methods read from it.
"""

import json
import sys
import time
from itertools import count
from pathlib import Path

from protocol.chain import journal as module

seconds = count(1_700_000_000)
time.time = lambda: float(next(seconds))  # the dump is the same every time
journal = module.Journal(Path(sys.argv[1]))
for nonce, (intent, status) in enumerate(
    [
        ("0xmarket:bid::aa", "mined"),
        ("0xmarket:progress::bb", "failed"),
        ("0xmarket:progress::bb", "mined"),
        ("0xmarket:submit::cc", "pending"),
        ("0xgame:respond:7:dd", "dropped"),
        ("own:0xvault:deposit::ee:4c1f", "pending"),
    ]
):
    entry = module.Entry(
        f"0x{nonce:064x}",
        intent,
        intent.split(":")[-3],
        nonce,
        bytes([nonce]) * 40,
        module.Status.PENDING,
        None,
    )
    journal.write(entry)
    if status != "pending":
        journal.mark(entry.hash, module.Status(status), 100 + nonce if status != "dropped" else None)


def told(entries):
    """Entries as JSON."""
    return [[e.hash, e.intent, e.label, e.nonce, e.raw.hex(), e.status.value, e.block] for e in entries]


intents = ["0xmarket:bid::aa", "0xmarket:progress::bb", "0xmarket:submit::cc", "0xgame:respond:7:dd"]
known = {
    "version": module.VERSION,
    "pending": told(journal.pending()),
    "intents": {intent: told(journal.of_intent(intent)) for intent in intents},
}
print(json.dumps(known))
