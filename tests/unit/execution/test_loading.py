"""Nodes import torch only when they first compute. Several threads may import it at once."""

from __future__ import annotations

import subprocess
import sys

NODES = """
import sys
from threading import Barrier, Thread

import solver.cli, solver.node, verifier.cli, verifier.node
from protocol.execution.loading import load_torch
from protocol.node.party import connection, data, starting

early = sorted({"torch", "protocol.program", "protocol.execution.replay"} & set(sys.modules))
print("early:", *early)

LATE = (
    "solver.assignment",
    "verifier.replaying",
    "verifier.states",
    "protocol.chain.game_view",
    "protocol.dispute.challenger",
    "protocol.dispute.defender",
    "protocol.program.scales",
    "protocol.tasks.bundles.fetch",
)
together, failed = Barrier(len(LATE)), []


def late(module):
    together.wait()
    try:
        load_torch()
        __import__(module)
    except BaseException as error:
        failed.append(repr(error))


threads = [Thread(target=late, args=(module,)) for module in LATE]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("failed:", *failed)
print("late:", *(module for module in ("torch", *LATE) if module not in sys.modules))
"""


def test_torch_comes_late_and_to_all_threads() -> None:
    done = subprocess.run([sys.executable, "-c", NODES], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["early:", "failed:", "late:"], done.stdout + done.stderr


def test_a_lazy_name_is_the_one_of_its_module() -> None:
    from protocol.tasks import bundles
    from protocol.tasks.bundles import Bundle, bundle, fetch

    assert bundles.fetch_bundle is fetch.fetch_bundle
    assert Bundle is bundle.Bundle
    assert not hasattr(bundles, "nothing")
