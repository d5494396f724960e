"""`PythonState` sees counters that are hard to find, such as those in slots, caches and other modules."""

from __future__ import annotations

import functools
import importlib
import io
import itertools
import logging
import os
import sys
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
)
from torch.utils.hooks import RemovableHandle

from protocol.capture import CaptureError
from protocol.capture.inputs import python_state
from protocol.capture.inputs.python_state import PythonState
from protocol.capture.inputs.python_values import digest_of_array
from tests.unit.capture import counting
from tests.unit.capture.steps import captured, cross_entropy

Step = Callable[[], object]


class Underscore:
    """Counts in a class attribute with a private name."""

    _calls = 0


def on_a_private_class_attribute() -> Step:
    def step() -> None:
        Underscore._calls += 1

    return step


def in_a_slot() -> Step:
    class Counter:
        __slots__ = ("n",)
        n: int

    counter = Counter()
    counter.n = 0

    def step() -> None:
        counter.n += 1

    return step


def behind_no_grad() -> Step:
    calls = [0]

    @torch.no_grad()
    def step() -> None:
        calls[0] += 1

    return step


def in_a_property() -> Step:
    calls = [0]

    class Owner:
        @property
        def weight(self) -> int:
            calls[0] += 1
            return calls[0]

    owner = Owner()
    return lambda: owner.weight


def behind_a_weak_reference() -> Step:
    counter = counting.Box()
    KEPT.append(counter)
    reference = weakref.ref(counter)

    def step() -> None:
        held = reference()
        assert held is not None
        held.n += 1

    return step


KEPT: list[object] = []


def in_a_context_variable() -> Step:
    calls = ContextVar("calls", default=0)
    return lambda: calls.set(calls.get() + 1)


def at_the_end_of_an_array() -> Step:
    array = np.zeros(10_000)

    def step() -> None:
        array[-1] += 1

    return step


def window_of_a_mapped_file(window: Callable[[Any, int], Any]) -> Step:
    """A step that replaces an array of a mapped file by `window` of the whole array and the number of steps."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers"
        np.arange(100.0).tofile(path)
        whole = np.memmap(path, dtype=float, mode="r")
    held = SimpleNamespace(window=window(whole, 0), steps=itertools.repeat(1))

    def step() -> None:
        held.window = window(whole, next(held.steps))

    return step


def in_the_place_of_a_window() -> Step:
    return window_of_a_mapped_file(lambda whole, k: whole[4 * k : 4 * k + 4])


def in_the_strides_of_a_window() -> Step:
    return window_of_a_mapped_file(lambda whole, k: whole[: 4 * (k + 1) : k + 1])


def in_the_type_of_a_window() -> Step:
    return window_of_a_mapped_file(lambda whole, k: whole[:4].view(np.int64 if k else np.float64))


def at_the_end_of_a_list() -> Step:
    numbers = [0] * 10_000

    def step() -> None:
        numbers[-1] += 1

    return step


def in_bytes() -> Step:
    numbers = bytearray(4)

    def step() -> None:
        numbers[0] += 1

    return step


def in_a_long_iterator() -> Step:
    values = itertools.chain([1.0] * 2_000, [0.5] * 2_000)
    return lambda: next(values)


def in_a_generator_over_a_list() -> Step:
    def schedule() -> Iterator[float]:
        yield from [1.0] * 1_000

    values = schedule()
    return lambda: next(values)


def in_the_result_of_a_cached_function() -> Step:
    @functools.lru_cache
    def shared() -> dict[str, int]:
        return {"n": 0}

    return counting_in(shared)


def counting_in(shared: Callable[[], dict[str, int]]) -> Step:
    shared()

    def step() -> None:
        shared()["n"] += 1

    return step


def in_the_result_of_a_cached_function_in_a_decorator_of_torch() -> Step:
    @functools.lru_cache
    @torch.no_grad()
    def shared() -> dict[str, int]:
        return {"n": 0}

    return counting_in(shared)


def in_the_result_of_a_cached_function_in_a_decorator_of_the_standard_library() -> Step:
    @contextmanager
    def nothing() -> Iterator[None]:
        yield

    @functools.lru_cache
    @nothing()
    def shared() -> dict[str, int]:
        return {"n": 0}

    del shared.__wrapped__.__wrapped__  # type: ignore[attr-defined]  # the closure still has the function
    return counting_in(shared)


def in_the_result_of_a_cached_function_that_wraps_itself() -> Step:
    def made() -> dict[str, int]:
        return {"n": 0}

    made.__wrapped__ = made  # type: ignore[attr-defined]
    return counting_in(functools.lru_cache(torch.no_grad()(made)))


def in_the_first_of_two_closures_from_one_function() -> Step:
    def counter() -> Step:
        calls = 0

        def count() -> None:
            nonlocal calls
            calls += 1

        return count

    first, second = counter(), counter()
    kept = [first, second]
    return lambda: kept[0]()


def in_a_function_of_another_module() -> Step:
    return lambda: counting.count()


def in_a_variable_of_another_module() -> Step:
    def step() -> None:
        counting.calls += 1

    return step


def in_a_module_imported_late() -> Step:
    def step() -> None:
        from tests.unit.capture.counting import count

        count()

    return step


def in_the_environment() -> Step:
    os.environ["CALLS_OF_A_TEST"] = "0"

    def step() -> None:
        os.environ["CALLS_OF_A_TEST"] += "0"

    return step


def in_a_text_in_memory() -> Step:
    text = io.StringIO()
    return lambda: text.write("step")


def in_an_open_file() -> Step:
    file = io.TextIOWrapper(io.BytesIO(b"1.0\n0.5\n"))
    return lambda: file.readline()


class Counting(logging.Handler):
    """Counts the records."""

    n = 0

    def emit(self, _: logging.LogRecord) -> None:
        self.n += 1


def in_a_handler() -> Step:
    handler = Counting()
    record = logging.makeLogRecord({})
    return lambda: handler.handle(record)


MAKERS = (
    in_the_environment,
    in_a_text_in_memory,
    in_an_open_file,
    in_a_handler,
    on_a_private_class_attribute,
    in_a_slot,
    behind_no_grad,
    in_a_property,
    behind_a_weak_reference,
    in_a_context_variable,
    at_the_end_of_an_array,
    in_the_place_of_a_window,
    in_the_strides_of_a_window,
    in_the_type_of_a_window,
    at_the_end_of_a_list,
    in_bytes,
    in_a_long_iterator,
    in_a_generator_over_a_list,
    in_the_result_of_a_cached_function,
    in_the_result_of_a_cached_function_in_a_decorator_of_torch,
    in_the_result_of_a_cached_function_in_a_decorator_of_the_standard_library,
    in_the_result_of_a_cached_function_that_wraps_itself,
    in_the_first_of_two_closures_from_one_function,
    in_a_function_of_another_module,
    in_a_variable_of_another_module,
    in_a_module_imported_late,
)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_hidden_counter_is_seen(make: Callable[[], Step]) -> None:
    step = make()
    before, unchanged = PythonState({"objective": step}), PythonState({"objective": step})
    assert before.changes(unchanged) == []
    step()
    assert before.changes(PythonState({"objective": step}))


def test_the_same_window_of_a_file_that_is_mapped_again_has_not_changed(tmp_path: Path) -> None:
    np.arange(100.0).tofile(tmp_path / "numbers")
    first, second = (np.memmap(tmp_path / "numbers", dtype=float, mode="r", offset=8) for _ in range(2))
    assert digest_of_array(first[4:8]) == digest_of_array(second[4:8])
    assert digest_of_array(first[4:8]) != digest_of_array(second[5:9])


def test_an_ordered_dict_is_whole_after_it_was_put_back() -> None:
    held = OrderedDict(a=1, b=2)
    state = PythonState({"held": held})
    held["c"] = 3
    held.move_to_end("a")
    state.restore()
    assert list(held.items()) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("trained", [False, True])
def test_a_step_that_asks_what_the_optimiser_keeps_is_refused(momentum: float, trained: bool) -> None:
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    if trained:
        model(torch.ones(1, 8)).sum().backward()
        optimizer.step()
    kept = dict(optimizer.state)

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        return cross_entropy(model, batch) * (1.0 if len(optimizer.state) else 0.5)

    with pytest.raises(CaptureError, match="not the same every time"):
        captured(model, objective, optimizer)
    assert list(optimizer.state.items()) == list(kept.items())


@pytest.mark.parametrize("how", ["import counts", "from counts import count"])
def test_a_counter_of_an_installed_package_is_seen(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    text = "calls = 0\n\ndef count():\n    global calls\n    calls += 1\n    return 1.0 if calls < 1000 else 0.5\n"
    (folder / "counts.py").write_text(text)
    call = how.removeprefix("import ") + ".count" if how.startswith("import") else "count"
    (tmp_path / "own.py").write_text(f"{how}\n\ndef factor(model, batch):\n    return {call}()\n")
    for path in (folder, tmp_path):
        monkeypatch.syspath_prepend(path)
    for name in ("counts", "own"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    factor = importlib.import_module("own").factor
    with pytest.raises(CaptureError, match="calls changes from 1 to 2"):
        captured(nn.Linear(8, 3), lambda model, batch: cross_entropy(model, batch) * factor(model, batch))


@pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:For backward hooks to be called")
@pytest.mark.parametrize(
    "register",
    [register_module_forward_pre_hook, register_module_forward_hook, register_module_full_backward_hook],
)
def test_a_counter_of_a_hook_on_all_modules_is_seen(register: Callable[..., RemovableHandle]) -> None:
    calls = {"n": 0}

    def hook(*_: object) -> None:
        calls["n"] += 1

    handle = register(hook)
    try:
        with pytest.raises(CaptureError, match=r"calls\['n'\] changes"):
            captured(nn.Linear(8, 3))
    finally:
        handle.remove()
    captured(nn.Linear(8, 3))


def test_what_lies_beyond_the_objects_looked_at_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_state, "MOST_OBJECTS", 2_000)
    few, many = [[k] for k in range(10)], [[k] for k in range(2_000)]

    def with_kept(kept: object) -> Callable[[nn.Module, Mapping[str, Tensor]], Tensor]:
        return lambda model, batch: cross_entropy(model, batch) * (1.0 if kept else 0.5)

    assert captured(nn.Linear(8, 3), with_kept(few)).notes == ()
    (note,) = captured(nn.Linear(8, 3), with_kept(many)).notes
    assert "more than 2,000 Python objects" in note
    assert "kept[" in note
    assert "not watched" in note
