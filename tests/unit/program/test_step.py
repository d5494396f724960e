"""A step program maps a state to a state, and gives their roots (encoding.md sections 2 and 4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protocol.commitments import Tree, tensor_root
from protocol.commitments.digests import Digester
from protocol.numerics.types import DType, NumericsError, to_bytes
from protocol.program import Builder, CheckError, Interpreter, StepProgram, TensorType, ValueMismatch

F32 = DType.F32
ROW = TensorType(F32, (2, 4))
HALF = TensorType(F32, (4,))
X = torch.arange(-3.0, 5.0).reshape(2, 4)


def step_program() -> StepProgram:
    """Map (w, n, data, rate) to (w - rate data[n], n + 1)."""
    b = Builder("step")
    w, n = b.input(TensorType(F32, (4,))), b.input(TensorType(DType.I32, ()))
    data, rate = b.input(ROW), b.input(TensorType(F32, ()))
    b.output(b.sub(w, b.mul(rate, b.gather(data, n))))
    b.output(b.add(n, b.i32(1)))
    return StepProgram(b.build(), ("w", "n"), datasets=1, constants=1)


def test_a_step_program_replaces_its_state() -> None:
    step = step_program()
    step.check()
    assert step.state_bytes == 20
    fixed = [X, torch.tensor(0.5)]
    state = {"n": torch.tensor(1, dtype=torch.int32), "w": torch.ones(4)}
    after = step.step(state, fixed, Interpreter())
    assert after["w"].tolist() == [0.5, 0.0, -0.5, -1.0]
    assert after["n"].item() == 2
    roots = [tensor_root(to_bytes(after["w"], F32)), tensor_root(to_bytes(after["n"], DType.I32))]
    assert step.tensor_roots(after) == tuple(roots)
    assert step.state_root(after) == Tree.from_leaves(roots).root
    assert step.trace(state, fixed).outputs[0].equal(after["w"])
    constants = [tensor_root(to_bytes(x, F32)) for x in fixed]
    assert step.constants_root(fixed) == Tree.from_leaves(constants).root


@pytest.mark.parametrize("thinning", [1, 2, 8, 64])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_digest_of_a_state_is_that_of_its_canonical_bytes(thinning: int, threads: int) -> None:
    generator = torch.Generator().manual_seed(thinning)
    weights = torch.randn(300, 257, generator=generator)
    weights[7, ::5] = torch.nan
    weights.view(torch.int32)[200, 3] = -1  # a NaN with a payload
    tensors = {
        "w": weights,
        "t": torch.randn(40, 70, generator=generator).T,
        "n": torch.tensor(7, dtype=torch.int32),
        "b": torch.rand(5000, generator=generator) < 0.5,
        "u": torch.randint(0, 256, (64 * 1024,), dtype=torch.uint8, generator=generator),
        "i": torch.randint(-(2**62), 2**62, (3, 129), generator=generator),
    }
    dtypes = (F32, F32, DType.I32, DType.BOOL, DType.U8, DType.I64)
    types = [TensorType(dtype, tuple(x.shape)) for dtype, x in zip(dtypes, tensors.values(), strict=True)]
    b = Builder("still")
    for value in [b.input(type_) for type_ in types]:
        b.output(value)
    step = StepProgram(b.build(), tuple(tensors), datasets=0, constants=0)
    digester = Digester(bytes(range(32)), thinning)
    data = [to_bytes(x, dtype) for x, dtype in zip(tensors.values(), dtypes, strict=True)]
    for number in (0, 1, 7, 100):
        due = digester.state_root(data, number)
        assert step.salted_state_root(tensors, digester, number, threads) == due


def test_a_state_is_kept_and_comes_back() -> None:
    step = step_program()
    state = {"n": torch.tensor(7, dtype=torch.int32), "w": torch.tensor([-0.0, 1e-45, torch.inf, torch.nan])}
    kept = step.checkpoint(state)
    assert kept.state_root == step.state_root(state)
    data = [bytes(tensor.data) for tensor in kept.tensors]
    assert step.checkpoint(step.state_of(data)).tensors == kept.tensors
    with pytest.raises(NumericsError):
        step.state_of([data[0], data[1] + b"\0"])


def test_a_state_of_other_names_or_types_is_refused() -> None:
    step = step_program()
    good = {"n": torch.tensor(1, dtype=torch.int32), "w": torch.ones(4)}
    for state in ({"w": good["w"]}, good | {"m": good["w"]}, good | {"w": torch.ones(5)}, good | {"n": X}):
        with pytest.raises(ValueMismatch):
            step.state_root(state)
    with pytest.raises(ValueMismatch):
        step.constants_root([X])


def step_of(*outputs: int) -> StepProgram:
    b = Builder("step")
    values = [b.input(ROW), b.input(HALF), b.input(HALF)]
    for k in outputs:
        b.output(values[k])
    return StepProgram(b.build(), ("w", "v"), 1, 0)


def test_a_step_maps_a_state_to_a_state() -> None:
    step_of(0, 2).check()
    for wrong in (step_of(1, 0), step_of(0), step_of(0, 1, 2)):
        with pytest.raises(CheckError):
            wrong.check()
    for fields in ({"state": ("w", "w")}, {"state": ()}, {"datasets": 0}, {"constants": 1}):
        with pytest.raises(CheckError):
            replace(step_of(0, 1), **fields).check()
