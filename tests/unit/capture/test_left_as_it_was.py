"""A capture, even one that fails, leaves model and objective unchanged and without traced tensors."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import FrameType, FunctionType, ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM

from protocol.capture import CaptureError, Objective
from protocol.capture.tracing.tracer import is_traced
from tests.unit.capture.steps import DATASET, captured, cross_entropy, drawn

Batch = Mapping[str, Tensor]


class Around(nn.Module):
    """A linear layer on a scaled input. Between calls, each subclass keeps a tensor in a different place."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)

    def ramp(self, x: Tensor) -> Tensor:
        return (torch.arange(x.shape[1]) + 1) / x.shape[1]

    def scale(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out(x * self.scale(x))
        return result


class InAnAttribute(Around):
    kept: Tensor | None = None

    def scale(self, x: Tensor) -> Tensor:
        if self.kept is None:
            self.kept = self.ramp(x)
        return self.kept


class InADict(Around):
    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, Tensor] = {}

    def scale(self, x: Tensor) -> Tensor:
        if x.shape[1] not in self.kept:
            self.kept[x.shape[1]] = self.ramp(x)
        return self.kept[x.shape[1]]


class InAList(Around):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []

    def scale(self, x: Tensor) -> Tensor:
        self.kept[:] = [self.ramp(x)]
        return self.kept[0]


class InItsClass(Around):
    kept: dict[str, Tensor] = {}  # noqa: RUF012 - the case

    def scale(self, x: Tensor) -> Tensor:
        self.kept["last"] = x
        return self.ramp(x)


class InACachedFunction(Around):
    def __init__(self) -> None:
        super().__init__()
        self.of_size.cache_clear()  # another test may have run it on real tensors

    @staticmethod
    @lru_cache
    def of_size(size: int) -> Tensor:
        return (torch.arange(size) + 1) / size

    def scale(self, x: Tensor) -> Tensor:
        return self.of_size(x.shape[1])


class InABuffer(Around):
    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(8))
        self.register_buffer("scaling", None)

    def scale(self, x: Tensor) -> Tensor:
        self.seen = self.seen + x.detach().mean(0)
        return self.ramp(x)


def with_a_hook() -> tuple[nn.Module, Objective]:
    model, outputs = nn.Linear(8, 3), {}

    def hook(module: nn.Module, _: object, output: Tensor) -> None:
        outputs[type(module)] = output
        module.last = output

    model.register_forward_hook(hook)
    model.register_forward_hook(lambda *_: None)

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        loss = cross_entropy(model, batch)
        return loss + outputs[nn.Linear].square().mean()

    return model, objective


TOKENS = {"x": torch.randint(0, 32, (20, 12), generator=torch.Generator().manual_seed(5))}
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "vocab_size": 32,
}


def language_model(model: Any) -> tuple[nn.Module, Objective]:
    def objective(model: Any, batch: Batch) -> Tensor:
        logits = model(input_ids=batch["x"], use_cache=False).logits
        return F.cross_entropy(logits[:, :-1].reshape(-1, 32), batch["x"][:, 1:].reshape(-1))

    return model, objective


def llama(kind: str) -> tuple[nn.Module, Objective]:
    """A small Llama whose rotary embedding is of type `kind`."""
    rope = {"rope_type": kind, "rope_theta": 10_000.0, "factor": 2.0}
    config = LlamaConfig(**SMALL, intermediate_size=32, max_position_embeddings=8, rope_parameters=rope)
    return language_model(LlamaForCausalLM(config))


def gpt_neox() -> tuple[nn.Module, Objective]:
    return language_model(GPTNeoXForCausalLM(GPTNeoXConfig(**SMALL, intermediate_size=32)))


CASES: dict[str, Callable[[], tuple[nn.Module, Objective]]] = {
    "attribute": lambda: (InAnAttribute(), cross_entropy),
    "dict": lambda: (InADict(), cross_entropy),
    "list": lambda: (InAList(), cross_entropy),
    "class": lambda: (InItsClass(), cross_entropy),
    "cached function": lambda: (InACachedFunction(), cross_entropy),
    "buffer": lambda: (InABuffer(), cross_entropy),
    "batch norm": lambda: (nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 3)), cross_entropy),
    "hook": with_a_hook,
    "rotary": lambda: llama("default"),
    "rotary, linear": lambda: llama("linear"),
    "rotary, GPT-NeoX": gpt_neox,
}


def held(model: nn.Module) -> dict[str, Any]:
    """The identity of every attribute, parameter and buffer of each module. Also the elements of these
    tensors, the items of lists, and the keys of dicts, such as the dicts of hooks.
    """
    found: dict[str, Any] = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            found[f"{path}.{name}"] = id(value), list(value) if isinstance(value, dict | list) else None
        for name, t in (*module._parameters.items(), *module._buffers.items()):
            found[f"{path}:{name}"] = id(t), None if t is None else (t.tolist(), t.requires_grad, t.grad)
    return found


def inside(value: object) -> list[Any]:
    """The objects that `value` holds. The globals of functions are left out, and so are the members of
    classes that other modules define.
    """
    if isinstance(value, ModuleType | FrameType):
        return []
    if isinstance(value, FunctionType):
        return [value.__closure__, value.__defaults__, vars(value)]
    if isinstance(value, type):
        return [*vars(value).values()] if value.__module__ == __name__ else []
    return gc.get_referents(value)


def traced_tensors(*roots: object) -> list[object]:
    """All traced tensors that can be reached from `roots`."""
    seen: dict[int, object] = {}
    pending = [*roots]
    while pending:
        value = pending.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            pending.extend(inside(value))
    return [value for value in seen.values() if is_traced(value)]


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_a_capture_leaves_nothing_behind_and_another_is_the_same(
    make: Callable[[], tuple[nn.Module, Objective]],
) -> None:
    torch.manual_seed(0)
    model, objective = make()
    dataset = TOKENS if hasattr(model, "config") else DATASET
    untouched, before = copy.deepcopy(model.state_dict()), held(model)
    first = captured(model, objective, dataset=dataset)
    assert held(model) == before
    assert not traced_tensors(model, objective)
    second = captured(model, objective, dataset=dataset)
    assert first.root == second.root
    assert all(torch.equal(t, second.initial[name]) for name, t in first.initial.items())
    assert all(torch.equal(t, untouched[name]) for name, t in model.state_dict().items())
    batch = drawn(first, first.initial_state(1))
    loss = objective(model, batch)  # would fail on a traced tensor that was kept
    assert isinstance(loss, Tensor)
    loss.backward()
    torch.testing.assert_close(
        first.step(first.initial_state(1))["metric.loss"], loss.detach(), rtol=2e-3, atol=0
    )


FAILURES: dict[str, Callable[[Tensor], Tensor]] = {
    "operation": torch.i0,
    "decision": lambda x: x if x.sum() > 0 else -x,
    "exception": lambda x: x / dict[str, float]()["divisor"],
    "shape": lambda x: x @ x,
}


@pytest.mark.parametrize("make", [case for name, case in CASES.items() if "rotary" not in name])
@pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
def test_a_capture_that_fails_leaves_nothing_behind(
    make: Callable[[], tuple[nn.Module, Objective]], fail: Callable[[Tensor], Tensor]
) -> None:
    model, objective = make()
    before = held(model)

    def failing(model: nn.Module, batch: Batch) -> Tensor:
        loss = objective(model, batch)
        assert isinstance(loss, Tensor)
        return loss + fail(model(batch["x"])).mean()

    with pytest.raises(CaptureError) as caught:
        captured(model, failing)
    del caught
    assert held(model) == before
    assert not traced_tensors(model, objective)
    captured(model, objective)
