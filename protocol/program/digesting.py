"""The salted root of a state, computed directly from its tensors (audit.md section 4).

Only the chunks that the digest selects are read. A tensor in CPU memory in committed form is read without
copies. The chunks of a tensor on another device are copied to the host.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from protocol.commitments.chunks import CHUNK
from protocol.commitments.digests import Digester
from protocol.commitments.roots import state_root
from protocol.commitments.threads import each
from protocol.numerics.types import DType, canonical_buffer, canonical_rows, require_storage


def salted_state_root(
    tensors: Sequence[Tensor], dtypes: Sequence[DType], digester: Digester, step: int, threads: int = 1
) -> bytes:
    """`digester.state_root` of the tensors' canonical bytes. Up to `threads` tensors are hashed in parallel."""

    def root(number: int) -> bytes:
        return salted_tensor_root(tensors[number], dtypes[number], digester, step)

    return state_root(each(root, range(len(tensors)), threads))


def salted_tensor_root(x: Tensor, dtype: DType, digester: Digester, step: int) -> bytes:
    """`digester.tensor_root` of a tensor's canonical bytes."""
    require_storage(x, dtype)
    flat, size = x.detach().contiguous().reshape(-1), dtype.itemsize

    def take(start: int, stop: int, stride: int) -> NDArray[np.uint8]:
        whole = (stop - start) // CHUNK
        rows = flat[start // size : start // size + whole * CHUNK // size].view(whole, CHUNK // size)
        return canonical_rows(rows[::stride], dtype)

    def rest(start: int) -> bytes:
        return canonical_buffer(flat[start // size :], dtype).tobytes()

    return digester.root_of(flat.numel() * size, step, take, rest)
