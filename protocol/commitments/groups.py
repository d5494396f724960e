"""Groups of a state's tensors: the pieces in which a checkpoint is served (docs/spec/dispute.md section 7).

A group is a run of consecutive tensors; its bytes are their canonical bytes, concatenated. The groups follow
from the tensors' sizes alone, so a server, a bucket and a client have the same groups. With one request for
each tensor, a state of many small tensors would take far longer to fetch than its bytes alone need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Final

from protocol.commitments.hashing import BytesLike

GROUP_BYTES: Final = 1 << 20
"""Maximum bytes of a group of several tensors; a single tensor may be larger.

A client allows a certain time for each byte and each tensor that it requests. Groups must not be too small,
so that this time also covers the overhead of each request. Two neighbouring groups together always exceed
`GROUP_BYTES`, or `GROUP_TENSORS` tensors. In the first case, a client that allows one second for each
mebibyte (`http_client.LEAST_RATE`) allows more than one second for the two requests. In the second case, the
bytes may be few, but the client also allows `TENSOR_SECONDS` for each tensor.
"""
GROUP_TENSORS: Final = 1 << 14
"""Maximum tensors of a group. A solver reads each tensor from a separate file; this many take about two seconds."""
TENSOR_SECONDS: Final = 1 / 250
"""Seconds that a server may take for each tensor, in addition to the time for the tensor's bytes. A solver
reads about 8,000 tensors a second and answers one reader at a time; 32 seats or jurors may ask it at once.
"""


def groups(sizes: Iterable[int]) -> list[range]:
    """The groups of tensors with these sizes in bytes, as ranges of tensor numbers. A tensor joins the
    preceding group if that group then stays within `GROUP_BYTES` and `GROUP_TENSORS`.
    """
    found: list[range] = []
    nbytes = 0
    for number, size in enumerate(sizes):
        if found and nbytes + size <= GROUP_BYTES and len(found[-1]) < GROUP_TENSORS:
            found[-1] = range(found[-1].start, number + 1)
            nbytes += size
        else:
            found.append(range(number, number + 1))
            nbytes = size
    return found


def cut(data: BytesLike, sizes: Sequence[int]) -> list[bytes]:
    """Cut `data`, the bytes of a group, into the group's tensors. `sizes` are the tensors' lengths in bytes,
    which add up to the length of `data`.
    """
    ends = accumulate(sizes, initial=0)
    return [bytes(memoryview(data)[start:end]) for start, end in pairwise(ends)]
