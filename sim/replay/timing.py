"""Chooses when to make the calls that request draws, so that the draws give the segments or looks that a
scenario needs.

The development chain's beacon signs with a secret that everybody knows, so a replay can predict its draws. On
other chains this is impossible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from protocol.beacon.bn254 import word
from protocol.chain.client import Client
from protocol.tasks.draws import picks, seed_of, segments_of
from sim.replay.rounds import signature

Wanted = Sequence[Sequence[int]]
"""For each seat, the segments that it must get."""


def submission(client: Client, task: int, root: bytes, segments: int, wanted: Wanted) -> int:
    """The earliest time after the present one, in seconds, at which submitting `root` leads to a draw that
    gives each seat its wanted segments. The task has `segments` segments.
    """
    for time, first in _seeds(client, task, root, 1):
        drawn = [segments_of(first, seat, segments, len(each)) for seat, each in enumerate(wanted)]
        if [sorted(each) for each in drawn] == [sorted(each) for each in wanted]:
            return time
    raise AssertionError  # There is always a next second.


def attestation(
    client: Client, task: int, candidates: Sequence[int], chance: int, room: int, wanted: Sequence[int]
) -> int:
    """The earliest time after the present one, in seconds, at which the transaction that ends a level leads to
    looks at exactly the wanted slots.
    """
    root, number = client.market.task(task).root, client.audit.audit(task).draws + 1
    for time, seed in _seeds(client, task, root, number):
        if picks(seed, candidates, chance, room) == sorted(wanted):
            return time
    raise AssertionError  # There is always a next second.


def _seeds(client: Client, task: int, root: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    """Yield pairs of a time and a seed, one pair for each second after the present one. The seed is that of
    draw `number` of a task if the draw is requested at that time.
    """
    deployment = client.deployment
    network, delay = deployment.beacon, deployment.parameters.draw_delay
    for time in count(client.now() + 1):
        due = network.round_at(time + delay)
        if network.time_of(due) < time + delay:
            due += 1
        found = word(signature(due))
        yield time, seed_of(deployment.chain_id, client.audit.address, task, root, number, found)
