"""Decodes ABI values as eth-abi does, but accepts strings that are not UTF-8.

Nothing checks the bytes of a Solidity string. A stranger who posts one that is not UTF-8 must not stop
everybody who reads tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_abi.codec import ABIDecoder
from eth_abi.decoding import StringDecoder
from eth_abi.registry import BaseEquals, registry


class _AnyString(StringDecoder):
    """Decodes a string. Each malformed piece becomes a question mark, which is visible and never longer than
    the piece.
    """

    @staticmethod
    def decoder_fn(data: bytes, handle_string_errors: str = "replace") -> str:
        return data.decode("utf-8", handle_string_errors).replace("\ufffd", "?")

    def __init__(self) -> None:
        super().__init__("replace")  # type: ignore[no-untyped-call]


def _decoder() -> ABIDecoder:
    lenient = registry.copy()  # type: ignore[no-untyped-call]
    lenient.unregister_decoder("string")
    equals = BaseEquals("string")  # type: ignore[no-untyped-call]
    lenient.register_decoder(equals, _AnyString, label="string")
    return ABIDecoder(lenient)


_DECODER = _decoder()


def decode_values(types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    """Decode values of these ABI types. Raises eth-abi's DecodingError if the bytes do not fit."""
    return tuple(_DECODER.decode(list(types), data))
