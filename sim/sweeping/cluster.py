"""Plays chunks on a Ray cluster, an optional extra: `pip install assay[ray]`. Rows are sent back and written
on this machine.

Workers need the same code: install this package on every node of the cluster, and also the file of your own
study if you use one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Iterable
from itertools import islice
from typing import Any

from protocol.errors import Retryable
from sim.errors import SweepError
from sim.sweeping.plan import Chunk
from sim.sweeping.workers import AHEAD, THREADS, Played, Workers


class ClusterLost(Retryable):
    """The cluster does not answer, or a chunk has lost its worker more often than Ray retries it."""


def ray_workers(address: str) -> Workers:
    """Return a function that plays chunks on the Ray cluster at `address`: "ray://host:10001", or "auto". If
    the address is "local", the function starts a cluster on this machine.

    Raises SweepError if the extra is not installed. The function raises ClusterLost if there is no cluster or
    the connection is lost.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends usage statistics unless told not to.
    try:
        import ray
    except ImportError as error:
        raise SweepError(
            "--ray: expected the optional extra `ray`, got none; pip install 'assay[ray]', or leave --ray out"
        ) from error

    def play(chunks: Iterable[Chunk]) -> Generator[Played]:
        _knock(address)
        threads = {"env_vars": dict.fromkeys(THREADS, "1")}
        try:
            ray.init(address=address, runtime_env=threads, log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ClusterLost(
                f"--ray: expected a cluster at {address}, got {error}; start it, or leave --ray out"
            ) from error
        try:
            yield from _in_flight(ray, chunks)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayError as error:
            raise ClusterLost(
                f"--ray: expected the cluster at {address} to stay, got {type(error).__name__}; "
                f"run the same command to go on"
            ) from error
        finally:
            ray.shutdown()

    return play


def _knock(address: str) -> None:
    """Raise ClusterLost after a few seconds if the host does not answer. Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return  # "auto" and "local".
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise ClusterLost(
            f"--ray: expected a cluster at {address}, got {error}; start it, or leave --ray out"
        ) from error


def _in_flight(ray: Any, chunks: Iterable[Chunk]) -> Generator[Played]:
    remote = ray.remote(num_cpus=1)(_play)
    left = iter(chunks)
    most = max(1, int(ray.cluster_resources().get("CPU", 1))) * AHEAD
    waiting = [remote.remote(chunk) for chunk in islice(left, most)]
    while waiting:
        done, waiting = ray.wait(waiting, num_returns=1)
        waiting += [remote.remote(chunk) for chunk in islice(left, len(done))]
        yield from ray.get(done)


def _play(chunk: Chunk) -> Played:
    from sim.sweeping.chunk import play_chunk

    return chunk.number, play_chunk(chunk)
