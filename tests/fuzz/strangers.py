"""Mutations of what honest parties write, and what an error about them may be."""

from __future__ import annotations

import random
import string

from protocol.errors import AssayError

LINE = 2_000
"""Characters of an error: it goes to a log and a database."""
SIGNS = "\0\t\n\r !\"#$%&'()*+,-./0:;<=>?@A[\\]^_`a{|}~\x7f\x80é①。．\u200d\u2028\ud800\U0001f600"


def mutated(chance: random.Random, text: str, pieces: list[str]) -> str:
    """A text with some characters or pieces put in, taken out, doubled or changed."""
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
    """Bytes with some changed, cut out or put in."""
    new = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(new) + 1)
        piece = chance.choice((b"", b"\0", b"\xff", b"\xff\xff\xff\xff", chance.randbytes(3), bytes(9_000)))
        new[at : at + chance.choice((0, 1, 4))] = piece
    return bytes(new)


def kind(error: AssayError, about: object) -> str:
    """The name of an error, in a form that can be logged."""
    assert len(str(error)) <= LINE, about
    assert str(error).isprintable(), about
    return type(error).__name__
