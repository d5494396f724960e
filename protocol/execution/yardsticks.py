"""Yardsticks: small one-step programs whose speed measures a machine. They use library functions as a
training does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import torch

from protocol.execution.families import Family
from protocol.execution.replay import Work
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import (
    activations,
    contractions,
    convolution,
    hints,
    kernels,
    layer_norm,
    softmax,
)
from protocol.program.library.windows import Sliding
from protocol.program.step import State, StepProgram
from protocol.program.types import TensorType

Shapes = tuple[tuple[int, ...], ...]
Body = Callable[..., tuple[Value, ...]]

ROWS, WIDTH = 1024, 512
"""Rows and width of the matrices. In the yardstick of products, each product takes 1024 x 512 x 512
multiplications, as in a small transformer.
"""
FEW: Final = 32
"""Columns of the product in the yardstick of primitives, which runs without a kernel."""
MATRIX: Final = (ROWS, WIDTH)
IMAGES: Final = (16, 32, 16, 16)
"""Images, channels, height and width."""
WINDOWS: Final = (32, 32, 3, 3)
SLIDING: Final = Sliding(3, 3, 1, 1, 1, 1, 1, 1).attributes()


def yardstick(family: Family) -> tuple[Work, State]:
    """A checked program of one family, and its initial state; both are the same on every call.

    The inputs of a step are in the state and do not change, so every step does the same work.
    """
    given, made, body = _BODIES[family]
    b = Builder(family.value)
    inputs = [b.input(TensorType(DType.F32, shape)) for shape in (*given, *made)]
    kept = inputs[: len(given)]
    for x in (*kept, *body(b, *kept)):
        b.output(x)
    names = tuple(f"x{number}" for number in range(len(inputs)))
    program = StepProgram(b.build(), names, datasets=0, constants=0)
    program.check()
    generator = torch.Generator("cpu").manual_seed(1)
    state = {
        name: torch.randn(x.shape, generator=generator, dtype=torch.float32, device="cpu")
        for name, x in zip(names, inputs, strict=True)
    }
    known = {} if family is Family.PRIMITIVES else hints(program.program)
    return Work(0, program, (), kernels(program.program, known)), state


def _products(b: Builder, x: Value, w: Value) -> tuple[Value, ...]:
    """A linear layer: forward and both gradients."""
    y = contractions.linear.call(b, x, w, px=13, py=13)
    at_input = contractions.linear_grad_input.call(b, y, w, px=20, py=13)
    return y, at_input, contractions.linear_grad_weight.call(b, y, x, px=20, py=13)


def _convolutions(b: Builder, x: Value, w: Value) -> tuple[Value, ...]:
    """A convolution: forward and both gradients."""
    height, width = x.shape[2:]
    y = convolution.conv.call(b, x, w, groups=1, **SLIDING)
    at_input = convolution.conv_grad_input.call(
        b, y, w, groups=1, height=height, width=width, px=20, py=13, **SLIDING
    )
    at_weight = convolution.conv_grad_weight.call(
        b, y, x, groups=1, gradient_in_windows=False, px=20, py=13, **SLIDING
    )
    return y, at_input, at_weight


def _functions(b: Builder, x: Value, gain: Value, bias: Value) -> tuple[Value, ...]:
    """The functions between the products of a transformer: layer norm, GELU and softmax."""
    y, _, _ = layer_norm.layer_norm.call(b, x, gain, bias, eps=1e-5)
    return (softmax.softmax.call(b, activations.gelu.call(b, y, tanh=False), safe=False),)


def _primitives(b: Builder, x: Value, y: Value, w: Value) -> tuple[Value, ...]:
    """Element-wise primitives and a product, all without a kernel."""
    low, high = b.minimum(x, y), b.maximum(x, y)
    mean = b.mul(b.add(x, y), b.constant(DType.F32, (), 0.5))
    z = b.sub(b.select(b.lt(low, mean), low, mean), b.mul(high, mean))
    return z, contractions.linear.call(b, z, w, px=13, py=13)


_BODIES: Final[Mapping[Family, tuple[Shapes, Shapes, Body]]] = {
    Family.PRODUCTS: ((MATRIX, (WIDTH, WIDTH)), (MATRIX, MATRIX, (WIDTH, WIDTH)), _products),
    Family.CONVOLUTIONS: ((IMAGES, WINDOWS), (IMAGES, IMAGES, WINDOWS), _convolutions),
    Family.FUNCTIONS: ((MATRIX, (WIDTH,), (WIDTH,)), (MATRIX,), _functions),
    Family.PRIMITIVES: ((MATRIX, MATRIX, (FEW, WIDTH)), (MATRIX, (ROWS, FEW)), _primitives),
}
"""For each family, the shapes of the inputs, the shapes of the results, and the computation."""
