"""Write keys.json: claim keys, priority commitments and seeds of draws.

Their definitions are in encoding.md section 5 and audit.md section 2. The values come from a second
implementation, which works word by word, without an ABI encoder. README.md has the format. Deterministic. Run
as `python -m tests.vectors.generate_keys`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eth_utils.crypto import keccak

from tests.vectors.generate_digests import columns, some, word

FILE = Path(__file__).with_name("keys.json")
PLACES = ((1, 1, 1), (7, 4, 8), (2**40 - 1, 2**20, 2**16), (2**200 + 5, 2**32 - 1, 2**24 - 1))
"""Each entry is a task, a segment and a step."""
CALLS = (b"", b"\x00\x04", bytes(range(31)), bytes(range(256)) * 16)
"""Bytes in place of call instructions."""
CHAINS = (1, 31_337, 2**256 - 1)
UNKNOWN = 2**32 - 1
"""The number that takes the place of the segment in a commitment that names no segment."""


def address(name: str) -> bytes:
    """20 bytes derived from a name."""
    return some(name)[:20]


def joined(*parts: int | bytes) -> bytes:
    """keccak256 of the parts as 32-byte words."""
    return keccak(b"".join(map(word, parts)))


def document() -> dict[str, Any]:
    """The whole file as JSON values."""
    traces = [(*place, some(f"before {i}"), some(f"after {i}")) for i, place in enumerate(PLACES)]
    callers = [joined(2, *trace) for trace in traces]
    commitments = [
        (chain, address(f"commitments {chain}"), task, segment, address(f"challenger {task}"), some("salt"))
        for chain in CHAINS
        for task, segment, _ in (*PLACES, (7, UNKNOWN, 0))
    ]
    seeds = [
        (chain, address(f"board {chain}"), task, some(f"root {task}"), draw, some(f"word {draw}"))
        for chain in CHAINS
        for task, draw in ((1, 1), (7, 2), (2**200 + 5, 255))
    ]
    calls = [(caller, call, joined(3, caller, keccak(call))) for caller in callers for call in CALLS]
    return {
        "steps": columns(
            "task segment key",
            [(str(task), str(segment), joined(1, task, segment)) for task, segment, _ in PLACES],
        ),
        "traces": columns(
            "task segment step before after key",
            [(*map(str, trace[:3]), *trace[3:], key) for trace, key in zip(traces, callers, strict=True)],
        ),
        "callees": columns("caller call key", calls),
        "commitments": columns(
            "chain contract task segment challenger salt commitment",
            [
                (str(chain), contract, str(task), str(segment), challenger, salt, joined(*row))
                for row in commitments
                for chain, contract, task, segment, challenger, salt in [row]
            ],
        ),
        "seeds": columns(
            "chain board task root draw word seed",
            [
                (str(chain), board, str(task), root, str(draw), drawn, joined(*row))
                for row in seeds
                for chain, board, task, root, draw, drawn in [row]
            ],
        ),
    }


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(document(), indent=0) + "\n")


if __name__ == "__main__":
    main()
