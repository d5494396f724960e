"""Random calls of library functions, in the forms that their kernels support: the results of a kernel have
the same bits as those of the function's body.

Sizes are drawn for every word of a form (`library/forms.py`), and values for every attribute. A size may also
be one that no captured program has but that a body accepts. For example, five cells have 20 gates, but a body
also accepts 24, because both numbers pad to 32 elements. `lane_emit` and `lane_absorb` are left out, because
their sizes depend on each other in ways that forms do not state; tests/unit/library has their cases.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from random import Random

import pytest
import torch
from torch import Tensor

from protocol.numerics.types import DType, from_bytes
from protocol.program.check import check
from protocol.program.errors import ProgramError
from protocol.program.execute import Interpreter, require_types
from protocol.program.library import CATALOGUE, Hint, recognise
from protocol.program.library.forms import FLAGS, FORMS, REALS
from protocol.program.library.function import Attribute
from protocol.program.program import Program
from protocol.program.types import TensorType
from tests.vectors.numerics_edges import OF as EDGES

CALLS = 30
"""Calls of each function that are compared."""
SIZES = (1, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 15, 16, 17, 20, 24, 31, 32, 33)
LARGEST = 1 << 18
"""Only programs whose values all have fewer elements than this are run."""
DTYPES = {"b": DType.U8, "i": DType.I32, "u": DType.U32}
CHOICES: Mapping[str, tuple[Attribute, ...]] = {
    **dict.fromkeys(("px", "py"), (13, 20)),
    **dict.fromkeys(FLAGS, (False, True)),
    **dict.fromkeys(REALS, (0.0, -0.0, 0.9, 1.0, 1e-8, 1e-42, -3.0)),
    **dict.fromkeys(("below", "stream"), (0, 1, 12345, 2**32 - 1)),
    **dict.fromkeys(("padding_y", "padding_x"), (0, 0, 1, 2, 5)),
    "reduction": (0, 1, 2),
    "ignore": (-100, 0, 1),
}
OTHER = (1, 1, 2, 3, 4, 5, 8)
"""Values for each attribute that `CHOICES` does not name: sizes, strides and counts."""


def types_of(form: str, r: Random) -> list[TensorType]:
    """Operand types of a form. In some calls, a size that should be a multiple of another is made a little
    larger than the multiple. It may still pad to the same number of elements.
    """
    sizes: dict[str, tuple[int, ...]] = {
        "*": tuple(r.choice((1, 2, 3)) for _ in range(r.choice((0, 0, 1, 2))))
    }
    other = r.random() < 0.4
    types = []
    for word in form.split():
        if word.endswith("?") and r.random() < 0.5:
            break
        prefix, _, axes = word.rstrip("?").rpartition(":")
        shape: list[int] = []
        factor = 0
        for axis in axes.replace("-", ""):
            if axis.isdigit():
                factor = int(axis)
                continue
            size = sizes.setdefault(axis, (r.choice(SIZES),))
            name = f"{factor}{axis}"
            if factor:
                size = sizes.setdefault(name, (size[0] * factor + (r.choice((1, 4, 8)) if other else 0),))
            shape += size
            factor = 0
        types.append(TensorType(DTYPES.get(prefix, DType.F32), (*shape, *([factor] if factor else []))))
    return types


def attributes_of(name: str, r: Random) -> dict[str, Attribute]:
    """A value for each keyword of a body. The body `keep_mask` also gets its axes; any other body that takes
    arbitrary keywords also gets kernel, stride, padding and dilation along y and x.
    """
    keywords = inspect.signature(CATALOGUE[name]._body).parameters.values()
    names = [each.name for each in keywords if each.kind is each.KEYWORD_ONLY]
    if name == "keep_mask":
        names += [f"d{axis}" for axis in range(r.randint(0, 4))]
    elif any(each.kind is each.VAR_KEYWORD for each in keywords):
        names += [f"{part}_{axis}" for part in ("kernel", "stride", "padding", "dilation") for axis in "yx"]
    return {each: r.choice(CHOICES.get(each, OTHER)) for each in names}


def convolved(name: str, attributes: Mapping[str, Attribute], types: list[TensorType], r: Random) -> None:
    """Change `types` so that a convolution's kernel has the size that the attributes name, and each group has
    whole channels.
    """
    groups = int(attributes["groups"])
    first, second = list(types[0].shape), list(types[1].shape)
    first[1] = groups * r.choice((1, 2, 3))
    if name == "conv_grad_weight":
        second[1] = groups * r.choice((1, 2, 3))
    else:
        second[2:] = [int(attributes["kernel_y"]), int(attributes["kernel_x"])]
        rows = groups * r.choice((1, 2, 13)) if name == "conv" else first[1]
        second[:2] = [rows, first[1] // groups if name == "conv" else r.choice((1, 2, 13))]
    types[:2] = [TensorType(DType.F32, tuple(shape)) for shape in (first, second)]
    types[2:] = [TensorType(DType.F32, (second[0],)) for _ in types[2:]]


def call_of(name: str, r: Random) -> tuple[Program, dict[str, Attribute]] | None:
    """The program and the attributes of a random call; None if the body does not accept the call, or if a
    value is too large.
    """
    attributes = attributes_of(name, r)
    types = types_of(r.choice(FORMS[name].split("|")), r)
    if name.startswith("conv"):
        convolved(name, attributes, types, r)
    try:
        program = CATALOGUE[name].program(types, attributes)
        check(program)
    except (ProgramError, ArithmeticError, LookupError):
        return None
    sizes = [t.elements for p in program.closure() for at in p.instructions for t in at.results]
    return (program, attributes) if max(sizes) < LARGEST else None


def filled(type_: TensorType, r: Random) -> Tensor:
    """A random tensor. For f32, ordinary numbers of any magnitude, or random bits; in some calls, a few
    elements are edge cases. For other types, whole numbers.
    """
    count, generator = type_.elements, torch.Generator().manual_seed(r.getrandbits(31))
    if type_.dtype is not DType.F32:
        low, high = (-2, r.choice((3, 10, 100))) if type_.dtype is DType.I32 else (0, 256)
        return torch.randint(low, high, type_.shape, generator=generator).to(type_.dtype.storage)
    x = torch.randn(count, generator=generator) * 2.0 ** r.choice((0, 0, 0, r.randint(-120, 100)))
    if r.random() < 0.2:
        data = r.randbytes(4 * count)
        x = from_bytes(data, DType.F32, (count,))
    for _ in range(r.choice((0, 0, 1, 3))):
        bits = r.choice(EDGES[DType.F32]) & 0xFFFFFFFF
        x[r.randrange(count)] = from_bytes(bits.to_bytes(4, "little"), DType.F32, (1,))[0]
    return x.reshape(type_.shape)


@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("lane_")])
def test_a_kernel_has_the_bits_of_its_body_in_every_form_that_it_takes(name: str) -> None:
    r = Random(f"forms {name}")
    compared = 0
    for _ in range(20 * CALLS):
        made = call_of(name, r)
        if made is None:
            continue
        program, attributes = made
        kernel = recognise(program, Hint(name, attributes))
        if kernel is None:
            continue
        given = [filled(type_, r) for type_ in program.inputs]
        what = f"results of {name} of {program.inputs} with {attributes}"
        fast, slow = kernel(given), Interpreter().run(program, given)
        require_types(program.outputs, fast, what)
        for one, other in zip(fast, slow, strict=True):
            assert torch.equal(*(x.contiguous().reshape(-1).view(torch.uint8) for x in (one, other))), what
        compared += 1
        if compared == CALLS:
            break
    assert compared == CALLS
