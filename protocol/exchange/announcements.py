"""A lane's signed statement that it has trained a round.

It lists the tensor roots of the state after the round; the roots of the message come last. The lane signs the
state's root as EIP-712 structured data, so that a contract can verify the same signature.

The signature also covers the job and its run. If a job is trained again, its lanes may sign different states
of the same rounds. Without the run, these would look like two states of one round.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from eth_account import Account
from eth_account.messages import SignableMessage, encode_typed_data
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.commitments.roots import state_root
from protocol.exchange.errors import MessageError
from protocol.exchange.jobs import LaneJob, first_of
from protocol.exchange.members import MOST_RUNS, Members
from protocol.lanes import Lanes, Part
from protocol.node.format_versions import only

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

DOMAIN: Final = {"name": "Assay lanes", "version": "2"}
TYPES: Final = {
    "Round": [
        {"name": "job", "type": "bytes32"},
        {"name": "run", "type": "uint64"},
        {"name": "number", "type": "uint64"},
        {"name": "lane", "type": "uint16"},
        {"name": "state", "type": "bytes32"},
    ]
}

_Root = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["assay-round"]
    version: Annotated[int, only(2)]
    job: _Root
    run: Annotated[int, Field(ge=0, lt=MOST_RUNS)]
    number: Annotated[int, Field(ge=0, lt=1 << 31)]
    lane: Annotated[int, Field(ge=0, lt=1 << 16)]
    roots: Annotated[list[_Root], Field(min_length=1)]
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{130}$")]


@dataclass(frozen=True)
class Announcement:
    """A lane's signed statement about its state after round `number` in run `run` of a job: the state's tensor
    roots, in order.
    """

    job: bytes
    run: int
    number: int
    lane: int
    roots: tuple[bytes, ...]
    signature: bytes

    @classmethod
    def signed(
        cls, account: LocalAccount, job: bytes, run: int, number: int, lane: int, roots: Sequence[bytes]
    ) -> Self:
        """The announcement, signed by the lane's account."""
        made = cls(job, run, number, lane, tuple(roots), b"")
        signature = bytes(account.sign_message(made._signable).signature)
        return cls(job, run, number, lane, made.roots, signature)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Parse bytes written by `encode`. Raises `MessageError` if they are malformed; checks nothing else."""
        try:
            form = _Form.model_validate_json(data)
        except ValidationError as error:
            raise MessageError(
                "announcement", expected="the form of a round's announcement", got=first_of(error)
            ) from error
        roots = tuple(map(bytes.fromhex, form.roots))
        signature = bytes.fromhex(form.signature)
        return cls(bytes.fromhex(form.job), form.run, form.number, form.lane, roots, signature)

    def encode(self) -> bytes:
        """The announcement as JSON."""
        form = {
            "format": "assay-round",
            "version": 2,
            "job": self.job.hex(),
            "run": self.run,
            "number": self.number,
            "lane": self.lane,
            "roots": [root.hex() for root in self.roots],
            "signature": self.signature.hex(),
        }
        return json.dumps(form, separators=(",", ":")).encode()

    @classmethod
    def bytes_of(cls, lanes: Lanes) -> int:
        """Approximate bytes that a lane fetches per round from each other lane: an announcement and a message."""
        roots = (bytes(32),) * len(lanes.inner.state)
        return len(cls(bytes(32), 0, 0, 0, roots, bytes(65)).encode()) + lanes.message_bytes

    @cached_property
    def state_root(self) -> bytes:
        """The root of the announced state."""
        return state_root(self.roots)

    @property
    def _signable(self) -> SignableMessage:
        said: dict[str, Any] = {
            "job": self.job,
            "run": self.run,
            "number": self.number,
            "lane": self.lane,
            "state": self.state_root,
        }
        return encode_typed_data(DOMAIN, TYPES, said)

    def require(self, job: LaneJob, members: Members, number: int, lane: int) -> None:
        """Raise `MessageError` unless this is lane `lane`'s announcement of round `number`. The announcement
        must be for this job and for the run that `members` gives, it must have a root for each tensor of the
        state, and the lane's account must have signed it. The lane must train in that round.
        """
        accounts, table = members.accounts, members.table
        what = f"announcement of lane {lane} in round {number}"
        for name, expected, got in (
            ("job", job.id.hex(), self.job.hex()),
            ("run", members.run, self.run),
            ("round", number, self.number),
            ("lane", lane, self.lane),
            ("tensors in its state", len(job.lanes.inner.state), len(self.roots)),
        ):
            if expected != got:
                raise MessageError(what, expected=f"{name} {expected}", got=str(got))
        if not 0 <= lane < table.width or table.rows[number][lane] is Part.AWAY:
            raise MessageError(
                what, expected="a lane that trains in this round", got="one that is not a member of it"
            )
        signer = self._signer()
        if signer != accounts[lane]:
            raise MessageError(
                what, expected=f"a signature of {accounts[lane]}", got=signer or "none that is valid"
            )

    def _signer(self) -> str | None:
        try:
            return str(Account.recover_message(self._signable, signature=self.signature))
        except Exception:  # the libraries do not document which errors arbitrary bytes cause
            return None
