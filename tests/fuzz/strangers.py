"""Functions that mutate what honest parties write, and a check of the errors that the mutations cause."""

from __future__ import annotations

import random
import string

from protocol.errors import AssayError

LINE = 2_000
"""Maximum number of characters in an error message, which goes to a log and a database."""
SIGNS = "\0\t\n\r !\"#$%&'()*+,-./0:;<=>?@A[\\]^_`a{|}~\x7f\x80é①。．\u200d\u2028\ud800\U0001f600"


def mutated(chance: random.Random, text: str, pieces: list[str]) -> str:
    """The text with some characters or pieces inserted, removed, doubled or changed."""
    for _ in range(chance.randrange(4)):
        at, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        end = min(end, at + chance.choice((0, 1, 1, 4, 40)))
        new = chance.choice(
            (
                "",
                chance.choice(SIGNS),
                chance.choice(pieces),
                text[at:end] * 2,
                chance.choice(string.ascii_letters) * chance.choice((1, 63, 64, 255, 2_000)),
                text[at:end].swapcase(),
            )
        )
        text = text[:at] + new + text[end:]
    return text


def flipped(chance: random.Random, data: bytes) -> bytes:
    """The data with some bytes changed, removed or inserted."""
    new = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(new) + 1)
        piece = chance.choice((b"", b"\0", b"\xff", b"\xff\xff\xff\xff", chance.randbytes(3), bytes(9_000)))
        new[at : at + chance.choice((0, 1, 4))] = piece
    return bytes(new)


def kind(error: AssayError, about: object) -> str:
    """The name of an error's class. Also asserts that the error's message is short and printable."""
    assert len(str(error)) <= LINE, about
    assert str(error).isprintable(), about
    return type(error).__name__
