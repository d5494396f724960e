"""When to submit so that the first draw gives seats the segments that a story needs.

The development chain's beacon signs with a secret that everybody knows, so a replay can look ahead; a solver cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from protocol.beacon.bn254 import word
from protocol.chain.client import Client
from protocol.tasks.draws import seed_of, segments_of
from sim.replay.auditing import signature

Wanted = Sequence[Sequence[int]]
"""Segments of each seat."""


def submission(client: Client, task: int, root: bytes, segments: int, wanted: Wanted) -> int:
    """The next second whose submission of `root` leads to a draw of the wanted segments, of `segments` in all."""
    deployment = client.deployment
    network, delay = deployment.beacon, deployment.parameters.draw_delay
    for time in count(client.now() + 1):
        number = network.round_at(time + delay)
        if network.time_of(number) < time + delay:
            number += 1
        first = seed_of(deployment.chain_id, client.audit.address, task, root, 1, word(signature(number)))
        drawn = [segments_of(first, seat, segments, len(each)) for seat, each in enumerate(wanted)]
        if [sorted(each) for each in drawn] == [sorted(each) for each in wanted]:
            return time
    raise AssertionError  # `count` has no end.
