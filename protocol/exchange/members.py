"""The members file of a job: the lanes' accounts and addresses, and which lanes count in which round.

For now, this file replaces a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from eth_utils.address import is_checksum_address
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.exchange.errors import JobError
from protocol.exchange.jobs import LaneJob, first_of, read_file
from protocol.lanes import Membership, MembershipError
from protocol.node.addresses import Address, BadAddress
from protocol.node.format_versions import only

FILE: Final = "members.json"
"""The default name of the members file, which is in the job's folder."""
FIRST_PORT: Final = 8720
"""The default port of lane 0. Lane N listens on this port plus N."""
MOST_RUNS: Final = 1 << 31
"""The numbers of a job's runs start at 0 and stay below this."""
MOST_BYTES: Final = 1 << 26
"""Size limit of a members file, which takes about ten bytes per lane and round."""

_Url = Annotated[str, Field(max_length=500)]


class _Lane(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    account: Annotated[str, Field(pattern=r"^0x[0-9A-Fa-f]{40}$")]
    urls: list[_Url]


class _Members(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["assay-members"]
    version: Annotated[int, only(1)]
    run: Annotated[int, Field(ge=0, lt=MOST_RUNS)] = 0
    lanes: Annotated[list[_Lane], Field(min_length=1)]
    mirrors: list[_Url] = []
    rounds: list[list[str]] | None = None


@dataclass(frozen=True)
class Members:
    """The members of a job. `accounts` sign for the lanes, `urls` are the lanes' addresses, and `mirrors` may
    serve any lane's files. `table` has a row for each round, and after these a row for the result. The result
    is the state of a lane that has absorbed the last round's messages. Lanes that count in the row for the
    result must announce the same result; by default, these are the lanes that count in the last round.

    `run` numbers the trainings of the job. To train the job again, its members choose a number that they have
    not used before, because a lane signs only one state for each round of a run.
    """

    accounts: tuple[str, ...]
    urls: tuple[tuple[Address, ...], ...]
    mirrors: tuple[Address, ...]
    table: Membership
    run: int = 0

    @classmethod
    def read(cls, path: Path, job: LaneJob) -> Members:
        """Read the members of a job from a file. `run` is 0 if the file does not give it. Without `rounds`,
        every lane counts in every round. If `rounds` has no row for the result, the row of the last round is
        used for it.

        Raises `JobError` for a malformed file, `MembershipError` for a table that contradicts itself or the
        job.
        """
        try:
            found = _Members.model_validate_json(read_file(path, MOST_BYTES, "the members of a job"))
        except ValidationError as error:
            raise JobError(str(path), expected="the form of a members file", got=first_of(error)) from error
        wrong = [lane.account for lane in found.lanes if not is_checksum_address(lane.account)]
        if wrong:
            raise JobError(str(path), expected="accounts with their checksums", got=wrong[0])
        if len({lane.account for lane in found.lanes}) != len(found.lanes):
            raise JobError(str(path), expected="an account for each lane", got="one twice")
        width = job.lanes.width
        table = Membership.full(job.rounds, width) if found.rounds is None else Membership.of(found.rounds)
        of_result = len(table.rows) == job.rounds + 1
        for what, expected, got in (
            ("lanes", width, len(found.lanes)),
            ("lanes in each round", width, table.width),
            ("rounds", job.rounds, len(table.rows) - of_result),
        ):
            if expected != got:
                raise MembershipError(str(path), expected=f"{expected} {what}, as the job has", got=str(got))
        if not of_result:
            table = Membership((*table.rows, table.rows[-1]))
        joining = [lane for lane in range(width) if table.joins(job.rounds, lane)]
        if joining:
            raise MembershipError(
                str(path),
                expected="only lanes that train in the last round, in the row of the result",
                got=f"lane {joining[0]}",
            )
        urls = tuple(tuple(_address(path, url) for url in lane.urls) for lane in found.lanes)
        mirrors = tuple(_address(path, url) for url in found.mirrors)
        return cls(tuple(lane.account for lane in found.lanes), urls, mirrors, table, found.run)


def members_document(
    accounts: Sequence[str],
    urls: Sequence[Sequence[str]],
    mirrors: Sequence[str] = (),
    rounds: Sequence[Sequence[str]] | None = None,
    run: int = 0,
) -> dict[str, Any]:
    """The JSON document of a members file, as `Members.read` reads it."""
    lanes = [{"account": account, "urls": [*of]} for account, of in zip(accounts, urls, strict=True)]
    table = None if rounds is None else [[*row] for row in rounds]
    return {
        "format": "assay-members",
        "version": 1,
        "run": run,
        "lanes": lanes,
        "mirrors": [*mirrors],
        "rounds": table,
    }


def _address(path: Path, url: str) -> Address:
    try:
        return Address.parse(url)
    except BadAddress as error:
        raise JobError(str(path), expected=error.expected or "an address", got=url) from error
