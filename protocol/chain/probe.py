"""What a chain must offer before contracts are deployed to it (dispute.md section 1), asked of the chain
itself.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from protocol.chain.connection import Connection
from protocol.chain.errors import UnsuitableChain
from protocol.chain.header import encoded_header

SHA256_PRECOMPILE: Final = "0x" + "02".rjust(40, "0")
HISTORY_CONTRACT: Final = "0x0000F90827F1C53a10cb7A02335B175320002935"
"""EIP-2935: hashes of the last 8,191 blocks."""


def probe(connection: Connection) -> None:
    """Raises UnsuitableChain for the first property that the chain lacks."""
    _probe_sha256(connection)
    _probe_history(connection)
    _probe_header(connection)


def _probe_sha256(connection: Connection) -> None:
    found = connection.call_data(SHA256_PRECOMPILE, b"abc", label="SHA-256 precompile")
    _require("SHA-256 precompile", sha256(b"abc").hexdigest(), found.hex())


def _probe_history(connection: Connection) -> None:
    """The history of block hashes must be there and the chain's own: the draw trusts it, and a task that nobody can
    draw burns its solver's stake. BLOCKHASH alone would leave 256 blocks for the draw.
    """
    if not connection.code(HISTORY_CONTRACT):
        _require("block hashes (EIP-2935)", f"the history contract at {HISTORY_CONTRACT}", "no code there")
    head = connection.block().number
    found = connection.call_data(
        HISTORY_CONTRACT, (head - 1).to_bytes(32, "big"), block=head, label="EIP-2935 history"
    )
    _require("block hashes (EIP-2935)", connection.block(head - 1).hash[2:], found.hex())


def _probe_header(connection: Connection) -> None:
    """The draw's seed is a header's mixHash: headers must be Ethereum's, and mixHash must be there."""
    number = connection.block().number
    encoded_header(connection, number)
    mix = int(connection.raw_block(number)["mixHash"], 16)
    if mix == 0:
        _require("mixHash of a block (PREVRANDAO)", "a random word", "0")


def _require(what: str, due: str, found: str) -> None:
    if due != found:
        raise UnsuitableChain(
            what,
            expected=due,
            got=found or "nothing",
            remedy="deploy to a chain with Ethereum's Prague rules",
        )
