"""Write beacon.json: points, hints and signed rounds that pytest and forge both replay.

README.md has the format. Deterministic: edge elements, then elements and rounds drawn from a counter.
Run as `python -m tests.vectors.generate_beacon`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from protocol.beacon import bn254
from protocol.beacon.bn254 import P

FILE = Path(__file__).with_name("beacon.json")
SECRET = 0xBEAC0
HALF = pow(2, -1, P)
EDGES = (0, 1, 2, HALF, P - HALF, P - 2, P - 1)
"""Field elements at the edges. For 1/2 and -1/2, the map inverts zero."""

EVMNET_KEY = bytes.fromhex(
    "07e1d1d335df83fa98462005690372c643340060d205306a9aa8106b6bd0b382"
    "0557ec32c2ad488e4d4f6008f89a346f18492092ccc0d594610de2732c8b808f"
    "0095685ae3a85ba243747b1b2f426049010f6b73a0cf1d389351d5aaaa1047f6"
    "297d3a4f9749b33eb2d904c9d9ebf17224150ddd7abd7567a9bec6c74480ee0b"
)
EVMNET_ROUND = 9337227
EVMNET_SIGNATURE = bytes.fromhex(
    "01d65d6128f4b2df3d08de85543d8efe06b0281d0770246ae3672e8ddd3efda0"
    "269373123458f0b5c0073eeed1c816a06809e127421513e34ee07df6987910b3"
)
"""`EVMNET_KEY`, `EVMNET_ROUND` and `EVMNET_SIGNATURE` belong to a round that the League of Entropy's evmnet
has published. https://api.drand.sh serves the round under the chain hash
04f1e9062b8a81f848fded9c12306733282b2727ecced50032187751166ec8c3.
"""


def element(case: int) -> int:
    """A pseudo-random field element."""
    return int.from_bytes(sha256(f"element {case}".encode()).digest(), "big") % P


def round_number(case: int) -> int:
    """A pseudo-random round number of any magnitude, from 1 to 2^64 - 1."""
    digest = int.from_bytes(sha256(f"round {case}".encode()).digest(), "big")
    return (digest % 2**64 >> digest % 63) or 1


def joined(*words: int) -> str:
    """32-byte words, one after the other."""
    return "0x" + b"".join(value.to_bytes(32, "big") for value in words).hex()


def columns(rows: list[dict[str, str]]) -> dict[str, list[str]]:
    """A table stored as columns: for each column's name, its values in all `rows`."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def map_row(u: int) -> dict[str, str]:
    """A field element, its point and its hints."""
    return {
        "u": joined(u),
        "point": joined(*bn254.map_to_point(u)),
        "hints": joined(*bn254.map_hints(u)),
    }


def round_row(key: bytes, number: int, signature: bytes) -> dict[str, str]:
    """A signed round."""
    message = bn254.round_message(number)
    first, second = bn254.hints(message)
    return {
        "key": "0x" + key.hex(),
        "round": str(number),
        "point": joined(*bn254.hash_to_point(message)),
        "hints": joined(*first, *second),
        "signature": "0x" + signature.hex(),
        "word": "0x" + bn254.word(signature).hex(),
    }


def document() -> dict[str, dict[str, list[str]]]:
    """The whole file."""
    key = bn254.public_key(SECRET)
    numbers = [1, 2**64 - 1, *map(round_number, range(10))]
    signed = [(key, number, bn254.sign(SECRET, bn254.round_message(number))) for number in numbers]
    return {
        "maps": columns([map_row(u) for u in (*EDGES, *map(element, range(57)))]),
        "rounds": columns(
            [round_row(*row) for row in [(EVMNET_KEY, EVMNET_ROUND, EVMNET_SIGNATURE), *signed]]
        ),
    }


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(document(), indent=0) + "\n")


if __name__ == "__main__":
    main()
