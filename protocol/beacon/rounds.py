"""A beacon network as a value, and its clock: round r is published at genesis + (r - 1) x period (drand's rule).

The field names are those of drand's HTTP API, `/v2/chains/{hash}/info`. Times are seconds since 1970.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from protocol.beacon.errors import NoSuchRound

SCHEME: Final = "bls-bn254-unchained-on-g1"
LAST_ROUND: Final = 2**64 - 1
"""Highest number of a round: the signed message holds the number as a u64."""


class Network(BaseModel):
    """One beacon network. `public_key` and `genesis_seed` are in hex: the key is 128 bytes, a point of G2 as
    x1, x0, y1, y0; the seed is 32 bytes, and the chain hash depends on it.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    beacon_id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{256}$")]
    genesis_time: Annotated[int, Field(ge=1, lt=2**63)]
    period: Annotated[int, Field(ge=1, lt=2**32)]
    genesis_seed: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scheme: Literal["bls-bn254-unchained-on-g1"] = SCHEME

    @property
    def key(self) -> bytes:
        """The public key, 128 bytes."""
        return bytes.fromhex(self.public_key)

    @property
    def chain_hash(self) -> str:
        """The hash that names the network in URLs, as hex of 32 bytes: drand's `Info.Hash`, the SHA-256 of
        period (u32), genesis time (i64), key, seed and name, with big-endian numbers.
        """
        numbers = self.period.to_bytes(4, "big") + self.genesis_time.to_bytes(8, "big")
        rest = self.key + bytes.fromhex(self.genesis_seed) + self.beacon_id.encode()
        return sha256(numbers + rest).hexdigest()

    def round_at(self, time: int) -> int:
        """Number of the newest round that has been published at `time`. Raises NoSuchRound if `time` is
        before the first round.
        """
        if time < self.genesis_time:
            raise NoSuchRound(
                f"round of beacon {self.beacon_id}",
                expected=f"a time from {self.genesis_time} on",
                got=time,
                remedy="wait for the network's first round, or set the chain's clock",
            )
        return (time - self.genesis_time) // self.period + 1

    def time_of(self, number: int) -> int:
        """The time when a round is published. Raises NoSuchRound if no round has that number."""
        if not 1 <= number <= LAST_ROUND:
            raise NoSuchRound(
                f"round of beacon {self.beacon_id}",
                expected=f"a number from 1 to {LAST_ROUND}",
                got=number,
                remedy="rounds are counted from 1",
            )
        return self.genesis_time + (number - 1) * self.period
