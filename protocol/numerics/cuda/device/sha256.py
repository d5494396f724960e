"""SHA-256 (FIPS 180-4) of many messages of equal length in parallel. A Triton program hashes LANES messages.

Words are u32. The compiler does not unroll loops by itself, so sixteen rounds are written out, in a loop that
runs four times.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _round(a, b, c, d, e, f, g, h, k, w):
    s1 = ((e >> 6) | (e << 26)) ^ ((e >> 11) | (e << 21)) ^ ((e >> 25) | (e << 7))
    t1 = h + s1 + (g ^ (e & (f ^ g))) + k + w
    s0 = ((a >> 2) | (a << 30)) ^ ((a >> 13) | (a << 19)) ^ ((a >> 22) | (a << 10))
    return d + t1, t1 + s0 + ((a & b) | (c & (a | b)))


@triton.jit
def _next(w0, w1, w9, w14):
    """The word of the message schedule sixteen places after `w0`."""
    s0 = ((w1 >> 7) | (w1 << 25)) ^ ((w1 >> 18) | (w1 << 14)) ^ (w1 >> 3)
    s1 = ((w14 >> 17) | (w14 << 15)) ^ ((w14 >> 19) | (w14 << 13)) ^ (w14 >> 10)
    return w0 + s0 + w9 + s1


@triton.jit
def compress(messages, out, constants, count, blocks, LANES: tl.constexpr):
    """Write the digests of `count` messages to `out`, u32 [8, count].

    `messages` holds the padded messages, u32 [16 * blocks, count]. Each column is a message: `blocks` blocks
    of 16 words. `constants` are the 64 round constants and the 8 initial hash values. All three are pointers
    to u32.
    """
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = lane < count
    zero = tl.zeros((LANES,), tl.uint32)
    s0, s1 = zero + tl.load(constants + 64), zero + tl.load(constants + 65)
    s2, s3 = zero + tl.load(constants + 66), zero + tl.load(constants + 67)
    s4, s5 = zero + tl.load(constants + 68), zero + tl.load(constants + 69)
    s6, s7 = zero + tl.load(constants + 70), zero + tl.load(constants + 71)
    at = messages + lane
    for _ in range(blocks):
        w0 = tl.load(at, mask=there, other=0)
        w1 = tl.load(at + 1 * count, mask=there, other=0)
        w2 = tl.load(at + 2 * count, mask=there, other=0)
        w3 = tl.load(at + 3 * count, mask=there, other=0)
        w4 = tl.load(at + 4 * count, mask=there, other=0)
        w5 = tl.load(at + 5 * count, mask=there, other=0)
        w6 = tl.load(at + 6 * count, mask=there, other=0)
        w7 = tl.load(at + 7 * count, mask=there, other=0)
        w8 = tl.load(at + 8 * count, mask=there, other=0)
        w9 = tl.load(at + 9 * count, mask=there, other=0)
        w10 = tl.load(at + 10 * count, mask=there, other=0)
        w11 = tl.load(at + 11 * count, mask=there, other=0)
        w12 = tl.load(at + 12 * count, mask=there, other=0)
        w13 = tl.load(at + 13 * count, mask=there, other=0)
        w14 = tl.load(at + 14 * count, mask=there, other=0)
        w15 = tl.load(at + 15 * count, mask=there, other=0)
        a, b, c, d, e, f, g, h = s0, s1, s2, s3, s4, s5, s6, s7
        for first in range(0, 64, 16):
            k = constants + first
            d, h = _round(a, b, c, d, e, f, g, h, tl.load(k), w0)
            c, g = _round(h, a, b, c, d, e, f, g, tl.load(k + 1), w1)
            b, f = _round(g, h, a, b, c, d, e, f, tl.load(k + 2), w2)
            a, e = _round(f, g, h, a, b, c, d, e, tl.load(k + 3), w3)
            h, d = _round(e, f, g, h, a, b, c, d, tl.load(k + 4), w4)
            g, c = _round(d, e, f, g, h, a, b, c, tl.load(k + 5), w5)
            f, b = _round(c, d, e, f, g, h, a, b, tl.load(k + 6), w6)
            e, a = _round(b, c, d, e, f, g, h, a, tl.load(k + 7), w7)
            d, h = _round(a, b, c, d, e, f, g, h, tl.load(k + 8), w8)
            c, g = _round(h, a, b, c, d, e, f, g, tl.load(k + 9), w9)
            b, f = _round(g, h, a, b, c, d, e, f, tl.load(k + 10), w10)
            a, e = _round(f, g, h, a, b, c, d, e, tl.load(k + 11), w11)
            h, d = _round(e, f, g, h, a, b, c, d, tl.load(k + 12), w12)
            g, c = _round(d, e, f, g, h, a, b, c, tl.load(k + 13), w13)
            f, b = _round(c, d, e, f, g, h, a, b, tl.load(k + 14), w14)
            e, a = _round(b, c, d, e, f, g, h, a, tl.load(k + 15), w15)
            w0 = _next(w0, w1, w9, w14)
            w1 = _next(w1, w2, w10, w15)
            w2 = _next(w2, w3, w11, w0)
            w3 = _next(w3, w4, w12, w1)
            w4 = _next(w4, w5, w13, w2)
            w5 = _next(w5, w6, w14, w3)
            w6 = _next(w6, w7, w15, w4)
            w7 = _next(w7, w8, w0, w5)
            w8 = _next(w8, w9, w1, w6)
            w9 = _next(w9, w10, w2, w7)
            w10 = _next(w10, w11, w3, w8)
            w11 = _next(w11, w12, w4, w9)
            w12 = _next(w12, w13, w5, w10)
            w13 = _next(w13, w14, w6, w11)
            w14 = _next(w14, w15, w7, w12)
            w15 = _next(w15, w0, w8, w13)
        s0, s1, s2, s3, s4, s5, s6, s7 = s0 + a, s1 + b, s2 + c, s3 + d, s4 + e, s5 + f, s6 + g, s7 + h
        at += 16 * count
    to = out + lane
    tl.store(to, s0, mask=there)
    tl.store(to + 1 * count, s1, mask=there)
    tl.store(to + 2 * count, s2, mask=there)
    tl.store(to + 3 * count, s3, mask=there)
    tl.store(to + 4 * count, s4, mask=there)
    tl.store(to + 5 * count, s5, mask=there)
    tl.store(to + 6 * count, s6, mask=there)
    tl.store(to + 7 * count, s7, mask=there)
