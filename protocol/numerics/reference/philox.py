"""Philox4x32-10 on plain integers (Salmon et al., SC 2011): arithmetic.md section 7."""

from __future__ import annotations

MASK = 0xFFFFFFFF


def block(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """The four words of one counter under one key."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & MASK, p0 >> 32 ^ c3 ^ k1, p0 & MASK
        k0, k1 = k0 + 0x9E3779B9 & MASK, k1 + 0xBB67AE85 & MASK
    return c0, c1, c2, c3


def word(key: tuple[int, int], step: int, stream: int, index: int) -> int:
    """Element `index` of the primitive `philox` (encoding.md opcode 0x0901)."""
    group = index // 4
    return block((group & MASK, group >> 32, step, stream), key)[index % 4]
