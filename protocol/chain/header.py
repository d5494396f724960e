"""A block's header as RLP, from the fields that a node serves: what AuditBoard.draw checks (encoding.md
section 7, EIP-4399).

Fields are those of Prague (21 of them: 15 of the yellow paper, EIP-1559, 4895, 4844 twice, 4788, 7685), in
that order; an older header ends earlier. Whether it is right needs no trust: its keccak-256 must be the
block's hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import rlp  # type: ignore[import-untyped]
from eth_utils.crypto import keccak

from protocol.chain.connection import Connection
from protocol.chain.errors import HeaderError

HISTORY: Final = 8_191
"""Blocks whose hash a contract can learn (EIP-2935); that of block n lies in storage slot n mod 8191."""

_BYTES: Final = "bytes"
_NUMBER: Final = "number"
_FIELDS: Final = (
    ("parentHash", _BYTES),
    ("sha3Uncles", _BYTES),
    ("miner", _BYTES),
    ("stateRoot", _BYTES),
    ("transactionsRoot", _BYTES),
    ("receiptsRoot", _BYTES),
    ("logsBloom", _BYTES),
    ("difficulty", _NUMBER),
    ("number", _NUMBER),
    ("gasLimit", _NUMBER),
    ("gasUsed", _NUMBER),
    ("timestamp", _NUMBER),
    ("extraData", _BYTES),
    ("mixHash", _BYTES),
    ("nonce", _BYTES),
)
_LATER: Final = (
    ("baseFeePerGas", _NUMBER),
    ("withdrawalsRoot", _BYTES),
    ("blobGasUsed", _NUMBER),
    ("excessBlobGas", _NUMBER),
    ("parentBeaconBlockRoot", _BYTES),
    ("requestsHash", _BYTES),
)


def encoded_header(connection: Connection, block: int) -> bytes:
    """The RLP header of a block. Raises HeaderError if the node's fields do not give its hash."""
    return encode_header(connection.raw_block(block))


def encode_header(fields: Mapping[str, Any]) -> bytes:
    """The RLP header made of a node's JSON fields, checked against its `hash`."""
    present = [*_FIELDS]
    for name, kind in _LATER:
        if fields.get(name) is None:
            break
        present.append((name, kind))
    header = rlp.encode([_item(fields[name], kind) for name, kind in present])
    found = "0x" + keccak(header).hex()
    if found != fields["hash"]:
        raise HeaderError(
            f"header of block {int(fields['number'], 16)}",
            expected=f"hash {fields['hash']}",
            got=f"{found} from {len(present)} fields",
            remedy="use a node of a chain whose headers are Ethereum's (up to Prague)",
        )
    return bytes(header)


def _item(value: str, kind: str) -> bytes:
    if kind == _BYTES:
        return bytes.fromhex(value.removeprefix("0x"))
    number = int(value, 16)
    return number.to_bytes((number.bit_length() + 7) // 8, "big")  # RLP: no leading zeros, 0 is empty
