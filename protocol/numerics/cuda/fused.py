"""Functions of elements, rows and lanes on CUDA, with the interface of `kernels.fused.Fused`.

They are checked against the same digests as the functions on a CPU. All operands are on one device, and they
are f32 except in messages. Results are contiguous and canonical. They are new tensors, except those of
`canonical_in_place` and `scalars`. The host reads nothing back, so everything can be recorded in a CUDA
graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from protocol.numerics.cuda import launch
from protocol.numerics.kernels.fused import SHARED

BLOCK = 1024
"""Elements per Triton program, in functions that compute each element separately: eight for each of 128 threads."""
TILE = 2048
"""Elements that a Triton program handles at a time in functions of rows, sixteen for each of 128 threads.
Several short rows share a program.
"""
COLUMN_ROWS, COLUMNS = 32, 64
"""Rows and columns per Triton program in sums of columns."""
GROUPED = 4096
"""Numbers per Triton program in functions of lanes, sixteen for each of 256 threads: one group of 64 blocks
of 64 numbers, or several groups of smaller blocks."""


class CudaFused:
    """The functions of `kernels.fused.Fused` in Triton. `Fused` documents them."""

    name = "fused-triton"

    def map(self, function: int, x: Tensor, g: Tensor | None = None) -> Tensor:
        """function(x) or, if g is given, g times function(x). `function` is a `kernels.fused.Map`."""
        x = x.detach().contiguous()
        g = None if g is None else g.detach().contiguous()
        out = torch.empty_like(x)
        constants = {"WHICH": int(function), "GRADIENT": g is not None, "BLOCK": BLOCK}
        _elements("map_elements", x.numel(), x if g is None else g, x, out, x.numel(), **constants)
        return out

    def softmax(self, x: Tensor, safe: bool) -> Tensor:
        """exp(x - max) / (sum of exp(x - max)) of every row; with `safe`, a row of only -inf gives zeros."""
        x = x.detach().contiguous()
        return _rows("softmax", x, (x,), SAFE=safe)

    def softmax_grad(self, g: Tensor, y: Tensor) -> Tensor:
        """y (g - sum(g y)) of every row."""
        g, y = g.detach().contiguous(), y.detach().contiguous()
        return _rows("softmax_grad", g, (g, y))

    def log_softmax(self, x: Tensor) -> Tensor:
        """x - max - log(sum of exp(x - max)) of every row."""
        x = x.detach().contiguous()
        return _rows("log_softmax", x, (x,))

    def log_softmax_grad(self, g: Tensor, y: Tensor) -> Tensor:
        """g - exp(y) sum(g) of every row."""
        g, y = g.detach().contiguous(), y.detach().contiguous()
        return _rows("log_softmax_grad", g, (g, y))

    def sum_rows(self, x: Tensor) -> Tensor:
        """Row sums: [… N] to [… 1]."""
        x = x.detach().contiguous()
        out = x.new_empty(*x.shape[:-1], 1)
        grid, tile = _tiles(x)
        launch.start("rows", "sum_rows", grid, x, out, *_table(x), **tile)
        return out

    def sum_columns(self, x: Tensor) -> Tensor:
        """Column sums: [M, N] to [1, N]."""
        return _columns(x.detach().contiguous()).reshape(1, -1)

    def layer_norm(
        self, x: Tensor, gain: Tensor | None, bias: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Layer norm of x [M, N]: y, mean [M, 1] and rstd [M, 1]."""
        x = x.detach().contiguous()
        gain, bias = (None if t is None else t.detach().contiguous() for t in (gain, bias))
        y, mean, rstd = torch.empty_like(x), x.new_empty(x.shape[0], 1), x.new_empty(x.shape[0], 1)
        grid, tile = _tiles(x)
        given = {"GAIN": gain is not None, "BIAS": bias is not None}
        operands = (x, x if gain is None else gain, x if bias is None else bias)
        launch.start(
            "rows", "layer_norm", grid, *operands, y, mean, rstd, float(eps), *_table(x), **given, **tile
        )
        return y, mean, rstd

    def layer_norm_grad(
        self, g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor | None
    ) -> Tensor:
        """The gradient of x [M, N]."""
        g, x, mean, rstd = (t.detach().contiguous() for t in (g, x, mean, rstd))
        gain = None if gain is None else gain.detach().contiguous()
        return _rows(
            "layer_norm_grad", x, (g, x, mean, rstd, x if gain is None else gain), GAIN=gain is not None
        )

    def layer_norm_grad_gain(self, g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
        """The gradient of the gain, [N]."""
        g, x, mean, rstd = (t.detach().contiguous() for t in (g, x, mean, rstd))
        return _columns(g, (x, mean, rstd))

    def scalars(self, *values: Tensor) -> tuple[Tensor, ...]:
        """Scalars in the form that `adamw` and `absorb` take: here the tensors themselves."""
        return values

    def adamw(
        self, tensors: tuple[Tensor, Tensor, Tensor, Tensor], scalars: tuple[Tensor | float, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One AdamW update, as in `Fused.adamw`; returns p', m', v'."""
        p, g, m, v = (t.detach().contiguous() for t in tensors)
        made = [torch.empty_like(p) for _ in range(3)]
        scales = [_on(x, p) for x in scalars[:3]]
        factors = [float(x) for x in scalars[3:]]
        _elements("adamw", p.numel(), p, g, m, v, *made, *scales, *factors, p.numel(), BLOCK=BLOCK)
        return made[0], made[1], made[2]

    def emit(
        self, tensors: tuple[Tensor, Tensor, Tensor], block: int, decay: float, top: float
    ) -> tuple[Tensor, ...]:
        """A message and the next feedback, from base, local and feedback, each [N]; see `library.lanes`."""
        base, local, feedback = (t.detach().contiguous() for t in tensors)
        blocks, kept = base.numel() // block, torch.empty_like(base)
        message = [base.new_empty(blocks, dtype=torch.uint8) for _ in range(2 if block > 1 else 1)]
        message.append(base.new_empty(blocks // SHARED, dtype=torch.int32))
        operands = (base, local, feedback, *_message(message), kept, float(decay), float(top))
        _groups("emit", blocks, block, *operands, blocks // SHARED)
        return *message, kept

    def absorb(
        self,
        tensors: tuple[Tensor, Tensor],
        messages: Sequence[Sequence[Tensor]],
        sizes: tuple[int, int],
        scalars: tuple[Tensor | float, ...],
    ) -> tuple[Tensor, Tensor]:
        """The next base and feedback from the current ones [N]; see `library.lanes`.

        `messages` are the lane's own message, then those of all lanes. `sizes` are the length of a block and
        the largest exponent. `scalars` are the rate, the divisor, and the share of the lane's own message
        that returns to the feedback.
        """
        base, feedback = (t.detach().contiguous() for t in tensors)
        own, *inbox = messages
        together = _message([torch.stack(kind) for kind in zip(*inbox)])
        made = (torch.empty_like(base), torch.empty_like(feedback))
        (block, limit), (rate, divisor, returned) = sizes, scalars
        blocks = base.numel() // block
        operands = (base, feedback, *_message([t.contiguous() for t in own]), *together, *made)
        factors = (_on(divisor, base), _on(returned, base), float(rate))
        _groups("absorb", blocks, block, *operands, *factors, limit, blocks, blocks * len(inbox))
        return made

    def canonical_in_place(self, x: Tensor) -> Tensor:
        """Canonicalise NaNs of an unshared contiguous tensor in place."""
        _elements("canonical_elements", x.numel(), x, x.numel(), BLOCK=BLOCK)
        return x


def _on(value: Tensor | float, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach()
    return torch.full((), value, dtype=torch.float32, device=like.device)


def _elements(kernel: str, count: int, *arguments: object, **constants: int) -> None:
    launch.start("elements", kernel, (-(-count // BLOCK),), *arguments, **constants)


def _rows(kernel: str, like: Tensor, operands: tuple[Tensor, ...], **constants: int) -> Tensor:
    out = torch.empty_like(like)
    grid, tile = _tiles(like)
    launch.start("rows", kernel, grid, *operands, out, *_table(like), **constants, **tile)
    return out


def _message(tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """A message's index, signed value and exponent, as kernels take them. If the message has no index, the
    value takes its place.
    """
    *index, value, exponent = tensors
    value = value.view(torch.int8)
    return index[0] if index else value, value, exponent


def _groups(kernel: str, blocks: int, block: int, *arguments: object) -> None:
    groups = GROUPED // (SHARED * block)
    grid = (-(-blocks // (SHARED * groups)),)
    launch.start("lanes", kernel, grid, *arguments, warps=8, GROUPS=groups, BLOCK=block)


def _table(x: Tensor) -> tuple[int, int]:
    return x.numel() // x.shape[-1], x.shape[-1]


def _tiles(x: Tensor) -> tuple[tuple[int], dict[str, int]]:
    """The grid of Triton programs for the rows of x, and the tile of each program. The tile says how many
    rows a program handles, and how many elements of each row it handles at a time.
    """
    rows, columns = _table(x)
    block = min(1 << (columns - 1).bit_length(), TILE)
    height = min(TILE // block, 1 << (rows - 1).bit_length())
    return (-(-rows // height),), {"ROWS": height, "BLOCK": block}


def _columns(g: Tensor, normal: tuple[Tensor, Tensor, Tensor] | None = None) -> Tensor:
    rows, columns = g.shape
    largest = torch.zeros(columns, dtype=torch.int32, device=g.device)
    totals = torch.zeros(columns, dtype=torch.int64, device=g.device)
    out = g.new_empty(columns)
    grid = (-(-rows // COLUMN_ROWS) * -(-columns // COLUMNS),)
    tile = {"NORMAL": normal is not None, "ROWS": COLUMN_ROWS, "BLOCK": COLUMNS}
    terms = (g, *(normal or (g, g, g)))
    launch.start("rows", "largest_of_columns", grid, *terms, largest, rows, columns, **tile)
    launch.start("rows", "add_columns", grid, *terms, largest, totals, rows, columns, **tile)
    last = (-(-columns // BLOCK),)
    launch.start("rows", "round_scaled_columns", last, largest, totals, out, columns, BLOCK=BLOCK)
    return out
