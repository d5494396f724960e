"""Shape classes of convolutions: arithmetic.md section 8, "Self-tests". See `shape_classes` for products.

A `ConvolutionCall` holds everything on which the path through native/convolution_*.h depends.
`shape_classes_of` gives, for one call, the smallest calls that together take all of its paths; the self-test
computes these smallest calls. Their windows and borders are those of the given call. The following are
reduced: rows of the left operand beyond two panels, terms beyond three chunks, samples, groups, and positions
along both axes. Remainders after runs of 32, 16 and 4 stay the same. Code that runs only with many terms (the
next block of a weight gradient, sums beyond 2^51) has its own class with few channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch

from protocol.numerics.kernels.shape_classes import least_size

FORWARD, AT_INPUT, AT_WEIGHT = range(3)
"""Kinds of convolution, numbered as in native/convolution.h."""
PANEL_ROWS, PANEL_COLUMNS = 12, 32
COPIED = (4, 16)
"""Adjacent columns are copied sixteen at a time, then four at a time (native/convolution_body.h)."""
CHUNK_PAIRS = 32
BLOCK_PAIRS = 1 << 11
"""Pairs of terms in a block of a weight gradient (native/convolution_shared.h)."""
WIDE_BITS, MOST_TERMS = 51, 1 << 19
"""Sums that may reach 2^51 are rounded by different code: from 2^11 terms on for 20 x 20 bits, from 2^18 for
20 x 13, and from 2^25 for 13 x 13, which is not tested. A self-test has fewer terms than `MOST_TERMS`.
"""
BESIDE, SLAB, REACH, MOST_PLACES = 8, 32, 64, 1 << 18
"""Limits of convolutions with one channel per group (native/convolution_depthwise.h). BESIDE channels are
stored side by side. A slab has at most SLAB rows of results. REACH is the longest distance, in elements, from
the first to the last element of a window. MOST_PLACES is the most positions that a thread's slabs may have
(16 MiB).
"""
MOST_PHASES = 1 << 12
"""The most phases that an AT_INPUT convolution may have (native/convolution_phases.h).

Each remainder modulo the strides has a phase. A phase takes about 200 bytes, even if it has a single element.
"""
MOST_TAPS = 1 << 12
"""The most elements that the kernel of one channel may have. For each element, the self-test multiplies
matrices, which takes 0.1 ms or more. Shape classes do not reduce this number: every class has a kernel of the
same size as its call.
"""
SHARED_PANELS = 8
"""If there are at least this many panels of columns per thread, two panels are packed together
(native/convolution_positions.h).
"""
THREADS = 2
"""Threads of a self-test: more threads would divide the work in the same way."""

Both = tuple[int, int]


class ConvolutionCall(NamedTuple):
    """One convolution. Pairs of sizes are in the order height, width. `inputs` and `outputs` are the numbers
    of channels in one group.
    """

    kind: int
    samples: int
    groups: int
    inputs: int
    outputs: int
    size: Both
    """Height and width of x."""
    result: Both
    """Height and width of g, which has the shape of the forward result."""
    kernel: Both
    stride: Both
    padding: Both
    dilation: Both
    bits: Both
    """Bits of the left operand and of the image (native/convolution.h)."""
    bias: bool
    threads: int

    def sliding(self) -> dict[str, int]:
        """The windows' attributes by name, as library functions take them."""
        pairs = {name: getattr(self, name) for name in ("kernel", "stride", "padding", "dilation")}
        return {f"{name}_{axis}": pair[k] for name, pair in pairs.items() for k, axis in enumerate("yx")}

    def x_shape(self) -> tuple[int, int, int, int]:
        """[N, C, H, W]."""
        return self.samples, self.groups * self.inputs, *self.size

    def g_shape(self) -> tuple[int, int, int, int]:
        """[N, O, OH, OW]."""
        return self.samples, self.groups * self.outputs, *self.result

    def w_shape(self) -> tuple[int, int, int, int]:
        """[O, C/G, KH, KW]."""
        return self.groups * self.outputs, self.inputs, *self.kernel

    def pairs(self) -> int:
        """The number of pairs of terms of a weight gradient. A pair is two samples at one position."""
        return _up(self.samples, 2) * self.result[0] * self.result[1]

    def is_depthwise(self) -> bool:
        """Whether the separate code for one channel per group computes this call.

        The windows must be short enough (`REACH`), the slabs small enough (`MOST_PLACES`), and the sum over a
        window at most 2^51.
        """
        near = all((k - 1) * d <= REACH for k, d in zip(self.kernel, self.dilation, strict=True))
        exact = self.kernel[0] * self.kernel[1] <= 2 * _wide_pairs(self)
        return self.inputs == self.outputs == 1 and near and exact and _places(self) <= MOST_PLACES

    def phases(self) -> int:
        """The number of phases. A phase is a set of results that use the same elements of the kernel."""
        return math.prod(map(min, self.stride, self.size)) if self.kind == AT_INPUT else 1

    def taps(self) -> int:
        """Number of elements of the kernel of one channel."""
        return math.prod(self.kernel)

    def positions(self) -> int:
        """Number of columns of a FORWARD or AT_INPUT product. For AT_INPUT, only the columns with remainder 0
        modulo the strides are counted.
        """
        return self.samples * _along(self, 0) * _along(self, 1)


def convolution_call(
    kind: int,
    x: Sequence[int],
    g: Sequence[int],
    groups: int,
    sliding: dict[str, int],
    bits: Both = (13, 13),
    bias: bool = False,
) -> ConvolutionCall:
    """The call for the shapes x [N, C, H, W] and g [N, O, OH, OW]. One of them may be the shape of the result."""
    kernel, stride, padding, dilation = (
        (sliding[f"{name}_y"], sliding[f"{name}_x"]) for name in ("kernel", "stride", "padding", "dilation")
    )
    sizes = (x[0], groups, x[1] // groups, g[1] // groups, (x[2], x[3]), (g[2], g[3]))
    return ConvolutionCall(
        kind, *sizes, kernel, stride, padding, dilation, bits, bias, torch.get_num_threads()
    )


@lru_cache(maxsize=4096)
def shape_classes_of(call: ConvolutionCall) -> tuple[ConvolutionCall, ...]:
    """The smallest calls that together take all paths of `call`."""
    return _depthwise(call) if call.is_depthwise() else tuple(map(_by_products, _classes(call)))


def _by_products(call: ConvolutionCall) -> ConvolutionCall:
    """`call`, changed if necessary so that products compute it. If the code for one channel per group would
    compute `call`, the left operand gets a second row. Otherwise `call` is unchanged.
    """
    if not call.is_depthwise():
        return call
    return call._replace(inputs=2) if call.kind == AT_INPUT else call._replace(outputs=2)


def _classes(call: ConvolutionCall) -> tuple[ConvolutionCall, ...]:
    """The shape classes of a call that is computed by products."""
    least = call._replace(groups=min(call.groups, 3), threads=min(call.threads, THREADS))
    least = _shorter(_shorter(least, 0), 1)
    least = least._replace(samples=_as_even(call.samples, 3))
    if call.kind == AT_WEIGHT:
        few = least._replace(inputs=min(call.inputs, 5), outputs=min(call.outputs, 5))
        least = least._replace(inputs=least_size(call.inputs, COPIED), outputs=_cut(call.outputs, PANEL_ROWS))
        return least, *(_longer(few, call, pairs) for pairs in _limits(call) if least.pairs() <= pairs)
    taps = call.kernel[0] * call.kernel[1]
    if call.kind == FORWARD:
        rows, channels = call.outputs, call.inputs
    else:
        rows, channels = call.inputs, call.outputs
        taps = _up(call.kernel[0], call.stride[0]) * _up(call.kernel[1], call.stride[1])
    rows = _cut(rows, PANEL_ROWS)
    channels = _as_even(channels, 2 * (3 * CHUNK_PAIRS // taps + 1))
    inputs, outputs = (channels, rows) if call.kind == FORWARD else (rows, channels)
    least = _filled(least._replace(inputs=inputs, outputs=outputs), call)
    wide, all_channels = _wide_pairs(call), call.inputs if call.kind == FORWARD else call.outputs
    if _up(all_channels, 2) * taps < wide or _up(channels, 2) * taps >= wide or 2 * wide >= MOST_TERMS:
        return (least,)
    rows, channels = min(rows, 5), _as_even(all_channels, 2 * _up(wide, taps))
    inputs, outputs = (channels, rows) if call.kind == FORWARD else (rows, channels)
    return least, least._replace(inputs=inputs, outputs=outputs)


def _depthwise(call: ConvolutionCall) -> tuple[ConvolutionCall, ...]:
    """The shape classes of a call with one channel per group.

    Weight gradients with long sums, over a sample or over all samples, have additional classes.
    """
    least = call._replace(groups=_cut(call.groups, BESIDE), threads=min(call.threads, THREADS))
    least = _shorter(_shorter(least, 0, SLAB), 1)._replace(samples=_as_even(call.samples, 3))
    if call.kind != AT_WEIGHT:
        return (least,)
    few, most = least._replace(groups=1), 2 * _wide_pairs(call)
    rows, columns = call.result
    longer = []
    if call.pairs() >= most // 2 > least.pairs() and most < MOST_TERMS:
        longer.append(_longer(few, call, most // 2 - 1))
    if rows * columns > most and most < MOST_TERMS:
        one = _shorter(call._replace(groups=1, samples=1, threads=few.threads), 0, SLAB)
        longer.append(_stretched(one, call, most // columns + 1))
    return least, *longer


def _places(call: ConvolutionCall) -> int:
    """An upper bound on the positions in the slabs of a thread, if `call` has one channel per group.

    A slab holds all image rows that 32 rows of results read, in their padded width. A weight gradient has a
    second slab, for rows of g.
    """
    (height, width), (result_y, result_x), (step_y, step_x) = call.size, call.result, call.stride
    reach_y, reach_x = ((k - 1) * d for k, d in zip(call.kernel, call.dilation, strict=True))
    padding = call.padding[1]
    if call.kind == AT_INPUT:
        rows = min(SLAB, _up(height, step_y)) + reach_y // step_y + 1
        wide = max(result_x, _up(padding, step_x) + _up(width, step_x)) + _up(
            max(reach_x - padding, 0), step_x
        )
        return rows * wide
    rows = (min(SLAB, result_y) - 1) * step_y + reach_y + 1
    wide = max(width + padding, (result_x - 1) * step_x + reach_x + 1)
    return rows * wide + (min(SLAB, result_y) * result_x if call.kind == AT_WEIGHT else 0)


def _limits(call: ConvolutionCall) -> list[int]:
    """The thresholds, in pairs of terms, beyond which other code runs. A threshold is left out if `call` does
    not exceed it, or if a call that exceeds it has too many terms for a test.
    """
    limits = sorted((BLOCK_PAIRS, _wide_pairs(call) - 1))
    return [pairs for pairs in limits if call.pairs() > pairs and 2 * pairs < MOST_TERMS]


def _wide_pairs(call: ConvolutionCall) -> int:
    """The least number of pairs of terms whose sum may reach 2^51."""
    return 1 << max(WIDE_BITS - sum(call.bits) - 1, 0)


def _longer(few: ConvolutionCall, call: ConvolutionCall, pairs: int) -> ConvolutionCall:
    """The call `few`, enlarged to more than `pairs` pairs of terms. Rows of results are added first, at most
    as many as `call` has; samples are added if the rows are not enough. If `pairs` is greater than
    `BLOCK_PAIRS`, the result has a single group, with one input and one output channel.
    """
    if pairs > BLOCK_PAIRS:
        few = few._replace(inputs=1, outputs=1, groups=1)
    each = _up(few.samples, 2) * few.result[1]
    few = _stretched(few, call, pairs // each + 1)
    missing = 2 * _up(pairs + 1, few.result[0] * few.result[1]) - (call.samples & 1)
    return few._replace(samples=min(call.samples, max(few.samples, missing)))


def _stretched(few: ConvolutionCall, call: ConvolutionCall, rows: int) -> ConvolutionCall:
    """`few`, extended to `rows` rows of results, or to as many as `call` has if those are fewer."""
    more = min(rows, call.result[0]) - few.result[0]
    if more <= 0:
        return few
    size = (few.size[0] + more * few.stride[0], few.size[1])
    return few._replace(size=size, result=(few.result[0] + more, few.result[1]))


def _filled(least: ConvolutionCall, call: ConvolutionCall) -> ConvolutionCall:
    """`least`, enlarged so that it packs panels together if `call` does, and fills its last panel if and only
    if `call` does. If no such call is found, `least` itself.
    """
    several = _up(call.positions(), PANEL_COLUMNS) * call.groups >= SHARED_PANELS * call.threads
    enough = SHARED_PANELS * least.threads if several else 0
    full = call.positions() % PANEL_COLUMNS == 0
    for samples in range(least.samples, min(call.samples, least.samples + 64) + 1):
        for more in range(min(8, call.result[0] - least.result[0] + 1)):
            found = _stretched(least, call, least.result[0] + more)._replace(samples=samples)
            alike_at_the_end = (found.positions() % PANEL_COLUMNS == 0) == full
            if alike_at_the_end and _up(found.positions(), PANEL_COLUMNS) * found.groups >= enough:
                return found
    return least


def _cut(size: int, tile: int, tiles: tuple[int, ...] = ()) -> int:
    """A smaller size that is cut into tiles in a similar way (see `least_size`). A size below `tile` is
    reduced by `least_size` with `tiles`. A multiple of `tile` is reduced to at most two whole tiles. Any
    other size is reduced to one whole tile plus its remainder, and `least_size` reduces the remainder with
    `tiles`.
    """
    return (
        least_size(size, tiles) if size < tile else min(size, tile + (least_size(size % tile, tiles) or tile))
    )


def _shorter(call: ConvolutionCall, axis: int, tile: int = 1) -> ConvolutionCall:
    """`call` with fewer positions along `axis`, unless it has only a few.

    The positions that are kept are cut into tiles in a similar way as those of `call` (see `_cut`). On axis 0
    a tile has `tile` positions, and there are no tiles if `tile` is 1. On axis 1 a tile has as many positions
    as a panel has columns. At least as many positions are kept as the borders of the image need.

    The part of the image after the last window is unchanged.
    """
    base, stride = _along(call, axis), call.stride[axis]
    borders = _up((call.kernel[axis] - 1) * call.dilation[axis], stride) + 2
    kept = (
        _cut(base, PANEL_COLUMNS, COPIED) if axis else _cut(base, tile) if tile > 1 else least_size(base, ())
    )
    fewer = base - max(kept, min(base, borders))
    fewer = max(0, min(fewer, call.result[axis] - 1, (call.size[axis] - 1) // stride))
    size, result = list(call.size), list(call.result)
    size[axis] -= fewer * stride
    result[axis] -= fewer
    return call._replace(size=(size[0], size[1]), result=(result[0], result[1]))


def _along(call: ConvolutionCall, axis: int) -> int:
    """Number of positions along an axis; for AT_INPUT, only those with remainder 0 modulo the stride are counted."""
    return _up(call.size[axis], call.stride[axis]) if call.kind == AT_INPUT else call.result[axis]


def _as_even(size: int, least: int) -> int:
    """`size` if it is at most `least`; otherwise `least` or `least` + 1, whichever has the parity of `size`."""
    return size if size <= least else least + ((least ^ size) & 1)


def _up(a: int, b: int) -> int:
    return -(-a // b)
