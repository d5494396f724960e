"""Random compositions of operations for `test_compositions`: odd shapes, nested views, writes through views,
and casts.

A composition is a function of a few f32 tensors. Each move takes one or two of the tensors made so far and
returns a new one, or None if the move does not apply, for example to a scalar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.unit.capture.operations import Case

Move = Callable[[Random, Tensor, Tensor], "Tensor | None"]
LARGEST = 400
"""Maximum number of elements in a tensor."""


def composition(seed: int) -> Case:
    """A case with two to four operands of broadcastable shapes and three to twelve moves."""
    random = Random(seed)
    base = [random.choice([1, 1, 2, 3, 4, 5]) for _ in range(random.choice([0, 1, 2, 2, 3, 3, 4]))]
    shapes = [_shape(random, base) for _ in range(random.choice([2, 3, 3, 4]))]
    moves, depth = random.randrange(2**30), random.choice([3, 5, 8, 12])

    def run(*operands: Tensor) -> Tensor:
        again, made = Random(moves), list(operands)
        for _ in range(depth):
            x, y = again.choice(made[-4:]), again.choice(made)
            result = again.choice(MOVES)(again, x, y)
            if result is not None and 0 < result.numel() <= LARGEST:
                made.append(result)
        results = made[len(operands) :][-4:] or [operands[0] * 2]
        return torch.cat([t.reshape(-1).to(operands[0].dtype) for t in results])

    return Case(f"composition {seed}", run, shapes)


def _one(random: Random, options: Sequence[Callable[[], Tensor | None]]) -> Tensor | None:
    return random.choice(options)()


def _shape(random: Random, base: Sequence[int]) -> tuple[int, ...]:
    start = random.randrange(len(base) + 1) if random.random() < 0.3 else 0
    return tuple(1 if random.random() < 0.25 else size for size in base)[start:]


def _axis(random: Random, x: Tensor) -> int:
    return random.randrange(-x.dim(), x.dim())


def _fit(x: Tensor, y: Tensor) -> bool:
    try:
        shape: Sequence[int] = torch.broadcast_shapes(x.shape, y.shape)
    except RuntimeError:
        return False
    return math.prod(shape) <= LARGEST


def _arithmetic(random: Random, x: Tensor, y: Tensor) -> Tensor | None:
    if not _fit(x, y) or torch.bool in (x.dtype, y.dtype):
        return None
    return _one(
        random,
        [
            lambda: x + y,
            lambda: x - y,
            lambda: torch.sub(x, y, alpha=2),
            lambda: x * y * 0.5,
            lambda: x / (y.abs() + 1),
            lambda: torch.maximum(x, y),
            lambda: torch.minimum(x, y),
        ],
    )


def _scalars(random: Random, x: Tensor, _: Tensor) -> Tensor | None:
    if x.dtype is torch.bool:
        return x * 2 + 1
    return _one(
        random,
        [
            lambda: 1 - x,
            lambda: x * 2,
            lambda: 3 + x,
            lambda: x / 4,
            lambda: 2 / (x.abs() + 1),
            lambda: -x,
            lambda: x.clamp(-1, 1),
            lambda: x**2,
        ],
    )


def _turned(random: Random, x: Tensor, _: Tensor) -> Tensor | None:
    if x.dim() < 2:
        return None
    order = random.sample(range(x.dim()), x.dim())
    return random.choice(
        [x.permute(order), x.transpose(0, -1), x.flatten(0, random.randrange(1, x.dim())), x.squeeze()]
    )


def _reshaped(random: Random, x: Tensor, _: Tensor) -> Tensor:
    first = random.choice([size for size in range(1, x.numel() + 1) if x.numel() % size == 0])
    shapes = [(first, -1), (-1,), (-1, 1, first), (1, -1, 1), (*x.shape, 1)]
    return x.reshape(random.choice(shapes))


def _part(random: Random, x: Tensor, _: Tensor) -> Tensor | None:
    if not x.dim():
        return None
    axis = _axis(random, x)
    size = x.shape[axis]
    start = random.randrange(size)
    index = [slice(None)] * x.dim()
    index[axis] = slice(start, None, random.choice([1, 2, 3]))
    return _one(
        random,
        [
            lambda: x[tuple(index)],
            lambda: x[-2:],
            lambda: x.select(axis, random.randrange(-size, size)),
            lambda: random.choice(x.chunk(random.choice([1, 2, 3]), axis)),
            lambda: x.split(random.choice([1, 2, 3]), axis)[-1],
            lambda: x.unbind(axis)[-1],
            lambda: x.unfold(axis, 1 + (size > 1), random.choice([1, 2])),
            lambda: x.index_select(axis, torch.arange(size) * 2 % size),
        ],
    )


def _repeated(random: Random, x: Tensor, y: Tensor) -> Tensor | None:
    axis = random.randrange(-x.dim() - 1, x.dim() + 1)
    if x.dim() > 4 or x.numel() > LARGEST // 4:
        return None
    return _one(
        random,
        [
            lambda: x.unsqueeze(axis),
            lambda: x.expand(random.choice([1, 3]), *x.shape),
            lambda: torch.stack([x, x + 2, x], axis),
            lambda: torch.stack([x, y.expand_as(x)]) if _fit(x, y) and y.dim() <= x.dim() == 0 else None,
            lambda: x.repeat(2, *(1 for _ in x.shape)),
        ],
    )


def _moved(random: Random, x: Tensor, y: Tensor) -> Tensor | None:
    if not x.dim():
        return None
    axis = _axis(random, x)
    alike = x.shape[:axis] == y.shape[:axis] and x.shape[axis:][1:] == y.shape[axis:][1:]
    if x.dim() == y.dim() and alike and random.random() < 0.5:
        return torch.cat([x, y, x], axis)
    moves: list[Callable[[], Tensor | None]] = [
        lambda: x.flip(axis),
        lambda: x.roll(random.choice([1, -2, 7]), axis),
    ]
    if x.dim() > 1:
        moves.append(lambda: x.tril(random.randrange(-2, 3)))
        moves.append(lambda: x.triu(random.randrange(-2, 3)))
        moves.append(lambda: x.diagonal(0, 0, 1))
        rows, columns = torch.arange(2) % x.shape[0], torch.arange(2)[:, None] % x.shape[1]
        moves.append(lambda: x[rows, columns])
    if x.is_floating_point():
        moves.append(lambda: F.pad(x, (random.choice([0, 1, 2]), random.choice([0, 1])), value=1.5))
    return _one(random, moves)


def _reduced(random: Random, x: Tensor, _: Tensor) -> Tensor | None:
    if not x.dim():
        return None
    axes = tuple(random.sample(range(x.dim()), random.randrange(1, x.dim() + 1)))
    kept = random.random() < 0.5
    if not x.is_floating_point():
        return x.sum(axes, keepdim=kept)
    return _one(
        random,
        [
            lambda: x.sum(axes, keepdim=kept),
            lambda: x.mean(axes, keepdim=kept),
            lambda: x.amax(axes, keepdim=kept),
            lambda: x.amin(axes, keepdim=kept),
            lambda: x.logsumexp(axes, keepdim=kept),
            lambda: x.max(axes[0], keepdim=kept)[0],
            lambda: x.var(axes, keepdim=kept, correction=0),
            lambda: torch.linalg.vector_norm(x, dim=axes, keepdim=kept),
            lambda: x.softmax(axes[0]),
            lambda: x.log_softmax(axes[0]),
            lambda: x.cumsum(axes[0]),
            lambda: F.layer_norm(x, x.shape[-1:]) if x.shape[-1] > 1 else None,
        ],
    )


def _curved(random: Random, x: Tensor, _: Tensor) -> Tensor | None:
    functions: tuple[Callable[[Tensor], Tensor], ...] = (
        torch.tanh,
        torch.sigmoid,
        F.gelu,
        F.silu,
        F.relu,
        torch.abs,
        torch.sin,
        F.softplus,
        F.elu,
    )
    return random.choice(functions)(x) if x.is_floating_point() else None


def _chosen(random: Random, x: Tensor, y: Tensor) -> Tensor | None:
    if not _fit(x, y):
        return None
    whole = x.expand(torch.broadcast_shapes(x.shape, y.shape))
    return _one(
        random,
        [
            lambda: torch.where(x > y, x, y),
            lambda: torch.where(x <= y, x, 0),
            lambda: (
                whole.masked_fill(y > 0, random.choice([0, -1, 2])) if x.dtype is not torch.bool else None
            ),
            lambda: x == y,
            lambda: (x > 0.5) | (y != 1),
            lambda: (x > 0) & (y > 0),
        ],
    )


def _typed(random: Random, x: Tensor, _: Tensor) -> Tensor | None:
    if x.is_floating_point():
        return _one(random, [lambda: (x * 3).long(), lambda: x.detach() + 1, lambda: x > 0])
    if x.dtype is torch.bool:
        return _one(random, [lambda: ~x, lambda: x.float(), lambda: x.long()])
    return _one(random, [lambda: x % 5, lambda: x // 3, lambda: x & 7, lambda: x * 0.5, lambda: x > 1])


def _product(random: Random, x: Tensor, y: Tensor) -> Tensor | None:
    if not x.dim() or not x.is_floating_point():
        return None
    width = x.shape[-1]
    products = [lambda: x @ x.reshape(-1, width)[0] * 0.3]
    if x.dim() > 1:
        products.append(lambda: x @ x.transpose(-1, -2) * 0.3)
    if y.numel() % width == 0:
        products.append(lambda: x @ y.to(x.dtype).reshape(width, -1) * 0.3)
    return _one(random, products)


def _written(random: Random, x: Tensor, _: Tensor) -> Tensor | None:
    if not x.dim() or not x.is_floating_point():
        return None
    whole = (x * 1.5).contiguous()
    view = random.choice([whole, whole.view(-1), whole.transpose(0, -1)])
    place = random.randrange(view.shape[0])
    _one(
        random,
        [
            lambda: view[place:].mul_(2),
            lambda: view[place].add_(1),
            lambda: view[: place + 1].copy_(view[: place + 1].flip(0)),
            lambda: view.sub_(view[place].clone()),
            lambda: view[place:].zero_(),
        ],
    )
    return whole


MOVES: tuple[Move, ...] = (
    *(_arithmetic, _arithmetic, _scalars, _turned, _turned, _reshaped, _reshaped, _part, _part),
    *(_repeated, _moved, _moved, _reduced, _reduced, _curved, _chosen, _typed, _product, _product, _written),
)
