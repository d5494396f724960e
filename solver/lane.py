"""`solver lane`: trains the rounds of one lane of a job, and serves the lane's messages to the other lanes.
It uses no chain.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from protocol.chain.accounts import DEVELOPMENT_CHAIN, open_account
from protocol.commitments.atomic import write_atomically
from protocol.errors import ExitCode
from protocol.exchange.errors import Divergence, Equivocation
from protocol.exchange.jobs import load_job
from protocol.exchange.lane import Lane, shelf_folder
from protocol.exchange.members import FILE, FIRST_PORT, Members
from protocol.exchange.server import application
from protocol.exchange.shelf import Shelf
from protocol.execution.device import checked
from protocol.execution.saving import safetensors_of
from protocol.node import logs
from protocol.node.addresses import Address
from protocol.node.home import Home
from protocol.node.party.settings import Host
from protocol.node.reach import Reach
from protocol.node.serving import Serving
from protocol.node.stopping import Stop
from protocol.numerics.self_check import self_check
from solver.errors import LaneRunning
from solver.public_place import PublicPlace
from solver.settings import PublishUrl

RESULT = "state.safetensors"
_log = logs.get("lane")


class LaneSettings(BaseModel):
    """The operator's options. Each comes from the first source that sets it: a flag, an ASSAY_* variable, the
    [lane] table of config.toml, or the default here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    account: str = "dev:1"
    password_file: Path | None = None
    host: Host = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = FIRST_PORT
    publish: PublishUrl | None = None
    """An fsspec URL such as s3://mine/assay. Messages are also written below it, for lanes that cannot reach
    this machine.
    """
    proxies: tuple[IPv4Address | IPv6Address, ...] = ()
    """Addresses of proxies in front of this server. Connections from them count as connections of many clients."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    peers: tuple[str, ...] = ()
    """Address prefixes, such as http://192.168.1.5:8720/. This lane may connect to any other lane whose
    address is below one of them. It may always connect to lanes at https addresses, and at http addresses on
    the internet. If it listens only on this machine, it may also connect to lanes on this machine.
    """
    keep_rounds: Annotated[int, Field(ge=2)] | None = None
    """Number of the latest rounds whose messages are kept for other lanes; if unset, the messages of all
    rounds are kept. A lane that is further behind cannot fetch the messages that it lacks, and must join with
    another lane's state.
    """


def run(home: Home, settings: LaneSettings, folder: Path, number: int, members: Path | None) -> ExitCode:
    """Train a lane's rounds, write its result, and serve until stopped, because others may still need its
    last message. After a `Divergence` or `Equivocation`, log the error, serve until stopped, and then raise
    the error. The lane keeps serving because the others need its announcements to find out which lane is at
    fault.

    Raises `JobError`, `BundleError`, `LanesError`, `MessageError`, `AccountError`, `PublicPlaceError`,
    `LaneRunning`, `DeviceError`, `SelfCheckError`, and the errors of `Serving`.
    """
    stop = Stop()
    stop.on_signals()
    self_check()
    job = load_job(folder, checked(settings.device))
    of_job = Members.read(members or folder / FILE, job)
    account = open_account(settings.account, DEVELOPMENT_CHAIN, settings.password_file)
    kept = shelf_folder(home.root, job, of_job.run, number)
    place = (
        None
        if settings.publish is None
        else PublicPlace(f"{settings.publish.rstrip('/')}/{job.id.hex()[:16]}")
    )
    with _alone(kept), Serving(application(kept), settings.host, settings.port, settings.proxies) as serving:
        local = Address.parse(serving.url).ip
        reach = Reach(settings.peers, this_machine=local is not None and local.is_loopback)
        lane = Lane(job, of_job, number, account, Shelf(kept, place), stop, reach, settings.keep_rounds)
        _log.info("serves", url=serving.url, lane=number, job=job.id.hex()[:16])
        result, fault = None, None
        try:
            result = lane.run()
        except (Divergence, Equivocation) as error:
            fault = error
            _log.error("stops training, and serves until it is stopped", why=str(error))
        if result is not None:
            said = {"job": job.id.hex(), "lane": str(number)}
            write_atomically(kept / RESULT, safetensors_of(job.lanes.captured.step_program, result, said))
            _log.info("finished", result=str(kept / RESULT))
        while not stop.wait(60.0):
            pass
    if fault is not None:
        raise fault
    return ExitCode.INTERRUPTED if stop.asked and result is None else ExitCode.FINE


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock. Raises `LaneRunning` if another process holds it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LaneRunning(
                str(folder),
                expected="no other process that runs this lane",
                got="one",
                remedy="stop it, or name another home folder with --home",
            ) from error
        yield
