"""Reads a round from a beacon's relays. All relays are asked at once, and the first valid signature is used.

Relays are not trusted: an answer counts only if the beacon's contract confirms that the network's key has
signed the requested round (`is_signed`, decision 144). A relay that lies, stalls, sends slowly or answers
with another round costs at most `patience` seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.beacon.errors import NoRelay
from protocol.beacon.rounds import LAST_ROUND, Network
from protocol.node import loops
from protocol.node.addresses import Address, public_part
from protocol.node.http_client import BadAnswer, HttpClient

PATIENCE: Final = 10.0
"""Seconds for the whole exchange with a relay."""
MAX_ANSWER: Final = 1 << 12
"""Maximum size of an answer in bytes; drand's answers have 260."""


IsSigned = Callable[[int, bytes], bool]
"""Checks whether 64 bytes are the network's signature of the round with the given number."""


class _Answer(BaseModel):
    """The part of a relay's answer that this module reads. The round's word is not read, because it follows
    from the signature.
    """

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    round: Annotated[int, Field(ge=1, le=LAST_ROUND)]
    signature: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{128}$")]


class Relays:
    """The relays of one network, for use from any thread. Raises BadAddress for an invalid address."""

    def __init__(
        self,
        network: Network,
        addresses: Sequence[str],
        is_signed: IsSigned,
        patience: float = PATIENCE,
    ) -> None:
        self.network = network
        self._is_signed = is_signed
        self.addresses = tuple(addresses)
        self._asked = [Address.parse(address) for address in addresses]
        self._patience = patience

    def signature(self, number: int) -> bytes:
        """The checked signature of a round, 64 bytes.

        Raises NoSuchRound if no round has that number, NoRelay if no relay gives a valid signature (the error
        says what was wrong with each answer), and whatever `is_signed` raises.
        """
        self.network.time_of(number)
        return loops.run(self._first_valid(number))

    async def _first_valid(self, number: int) -> bytes:
        asked = [asyncio.create_task(self._valid(relay, number)) for relay in self._asked]
        failures = []
        try:
            for answer in asyncio.as_completed(asked):
                relay, found = await answer
                if isinstance(found, bytes):
                    return found
                failures.append((public_part(str(relay)), found))
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        raise NoRelay(number, failures)

    async def _valid(self, relay: Address, number: int) -> tuple[Address, bytes | str]:
        """The relay, with its valid signature or a description of the fault in its answer."""
        data = bytearray()
        try:
            async with asyncio.timeout(self._patience), HttpClient() as client:
                await client.get(relay / f"{self.network.chain_hash}/public/{number}", MAX_ANSWER, data)
            answer = _Answer.model_validate_json(bytes(data))
        except TimeoutError:
            return relay, f"{len(data)} bytes in {self._patience:g} s"
        except BadAnswer as error:
            return relay, str(error)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            return relay, f"{'.'.join(map(str, first['loc'])) or 'the answer'}: {first['msg']}"
        if answer.round != number:
            return relay, f"round {answer.round}"
        signature = bytes.fromhex(answer.signature)
        # In a thread, because this asks the chain, and meanwhile the other answers must be read in time.
        if not await asyncio.to_thread(self._is_signed, number, signature):
            return relay, "a signature that is not the network's"
        return relay, signature
