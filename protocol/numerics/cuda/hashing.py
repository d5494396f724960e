"""Tensor roots computed on the tensors' CUDA device, so that only 32 bytes per tensor are copied to the host.

The tree is that of `commitments.chunks` over the same canonical bytes (encoding.md sections 1 and 2). Before
the first root on a device, a process compares a few test roots with hashlib's. If one byte differs, the
device is not used for roots. The inner nodes of the trees are not kept, because openings need the tensors'
bytes anyway.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import cache, lru_cache
from hashlib import sha256

import torch
from torch import Tensor

from protocol.numerics.cuda import launch
from protocol.numerics.types import DType, canonical, flattened

CHUNK, DIGEST = 1024, 32
LEAF, NODE = 0, 1
LANES = 128
"""Messages per Triton program, one per thread."""

_log = logging.getLogger("assay.numerics")


def roots(tensors: Sequence[Tensor], dtypes: Sequence[DType]) -> list[bytes] | None:
    """The tensor root of every tensor, or None if this module cannot compute them.

    It cannot if the tensors are not all on one CUDA device, if Triton is missing, or if test roots on that
    device differed from hashlib's.
    """
    devices = {x.device for x in tensors}
    device = next(iter(devices), torch.device("cpu"))
    if len(devices) != 1 or device.type != "cuda" or not launch.runs_on(device) or not is_right(str(device)):
        return None
    words = torch.stack([root_words(x, dtype) for x, dtype in zip(tensors, dtypes, strict=True)])
    data = words.cpu().numpy().astype(">i4").tobytes()
    return [data[i : i + DIGEST] for i in range(0, len(data), DIGEST)]


def root_words(x: Tensor, dtype: DType) -> Tensor:
    """The tensor root of `x`, on the device of `x`: the eight big-endian words of the SHA-256 hash, u32 [8]
    (held in i32).
    """
    data, nbytes = _words(x, dtype)
    whole = nbytes // CHUNK
    leaves = []
    if whole:
        leaves.append(_hash(data[: whole * CHUNK // 4].view(whole, CHUNK // 4).T, CHUNK, LEAF))
    if nbytes % CHUNK:
        leaves.append(_hash(data[whole * CHUNK // 4 :].view(-1, 1), nbytes % CHUNK, LEAF))
    level = torch.cat(leaves, dim=1)
    while level.shape[1] > 1:  # pairs become nodes; a leaf without a neighbour moves up unchanged
        pairs = level.shape[1] // 2
        both = torch.cat((level[:, : 2 * pairs : 2], level[:, 1 : 2 * pairs : 2]))
        level = torch.cat((_hash(both, 2 * DIGEST, NODE), level[:, 2 * pairs :]), dim=1)
    return level[:, 0]


@cache
def is_right(device: str) -> bool:
    """Whether test roots made on `device` equal hashlib's. The tests are three tensors, of three types, with
    4, 3 and 1 leaves.
    """
    where = torch.device(device)
    for dtype, count in ((DType.F32, 775), (DType.U8, 2103), (DType.BOOL, 6)):
        values = torch.arange(count, dtype=torch.int64, device="cpu") * 2654435761 % 251 - (
            0 if dtype is DType.U8 else 3
        )
        x = values.to(dtype.storage)
        found = root_words(x.to(where), dtype).cpu().numpy().astype(">i4").tobytes()
        if found != _by_hashlib(_host_bytes(x)):
            _log.warning("tensor roots are not made on %s: they have other bits than hashlib's", where)
            return False
    return True


def _host_bytes(x: Tensor) -> bytes:
    kind = {torch.float32: "<f4", torch.int64: "<i8"}.get(x.dtype, "u1")
    return bytes(x.numpy().astype(kind, copy=False).tobytes())


def _by_hashlib(data: bytes) -> bytes:
    level = [sha256(bytes([LEAF]) + data[i : i + CHUNK]).digest() for i in range(0, len(data), CHUNK)]
    while len(level) > 1:
        pairs = [sha256(bytes([NODE]) + a + b).digest() for a, b in zip(level[::2], level[1::2])]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def _words(x: Tensor, dtype: DType) -> tuple[Tensor, int]:
    """Return the canonical bytes as big-endian i32 words, the last one padded with zeros, and the number of
    bytes without the padding.
    """
    x = x.detach()
    flat = flattened(x != 0 if dtype is DType.BOOL else canonical(x))
    nbytes = flat.numel() * dtype.itemsize
    if dtype.itemsize == 1:
        flat = torch.nn.functional.pad(flat.view(torch.uint8), (0, -nbytes % 4))
    word = flat.view(torch.int32)
    swapped = (word << 24) | ((word << 8) & 0xFF0000) | ((word >> 8) & 0xFF00) | ((word >> 24) & 0xFF)
    return swapped, nbytes


def _hash(data: Tensor, nbytes: int, prefix: int) -> Tensor:
    """u32 [8, count]: for each column of `data` [words, count], the hash of `prefix` and the column's first
    `nbytes` bytes.
    """
    words, count = data.shape
    blocks = (nbytes + 9) // 64 + 1  # prefix, a one bit and the length are ten bytes; a block holds 64
    message = torch.zeros(16 * blocks, count, dtype=torch.int32, device=data.device)
    message[1 : words + 1] = data << 24
    message[:words] |= (data >> 8) & 0xFFFFFF
    message[0] |= prefix << 24
    end = 24 - (nbytes + 1) % 4 * 8
    message[(nbytes + 1) // 4] |= (0x80 << end) - ((1 << 32) if end == 24 else 0)
    message[-1] = 8 * (nbytes + 1)
    out = torch.empty(8, count, dtype=torch.int32, device=data.device)
    constants, grid = _constants(data.device), (-(-count // LANES),)
    unsigned = (t.view(torch.uint32) for t in (message, out, constants))
    launch.start("sha256", "compress", grid, *unsigned, count, blocks, LANES=LANES)
    return out


@lru_cache(maxsize=8)
def _constants(device: torch.device) -> Tensor:
    """The 64 round constants, then the 8 initial hash values, on a device."""
    primes = [n for n in range(2, 312) if all(n % d for d in range(2, math.isqrt(n) + 1))]
    words = [_fraction(p, 3) for p in primes[:64]] + [_fraction(p, 2) for p in primes[:8]]
    return torch.tensor(words, dtype=torch.int64, device="cpu").to(torch.int32).to(device)


def _fraction(n: int, root: int) -> int:
    """The first 32 fractional bits of the square or cube root of n: FIPS 180-4 sections 4.2.2 and 5.3.3."""
    power, low, high = n << (32 * root), 0, n << 32
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**root <= power else (low, middle - 1)
    return low & 0xFFFFFFFF
