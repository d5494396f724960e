"""What `assay.train` refuses before capture, where a second task begins, and what a waiting handle shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import assay
from assay.description import Description, RunTable, read
from assay.errors import PlanError, SourceError, StartError
from assay.results import Result
from assay.source import captured
from assay.starting import Start, read_start, seed_of
from assay.training.display import Relay, notebook_page
from assay.training.loading import model_tensors
from assay.training.posting import _plan, _start
from assay.watching.curve import Point
from assay.watching.progress import Progress
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.node.settings import SettingsError

MODEL = """
import torch
from torch import nn
from protocol.capture import capture

def build(steps{arguments}):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    data = {{"x": torch.arange(32.0).reshape(8, 4) / 32, "y": torch.ones(8, 2)}}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return capture(model, objective, optimizer, data, batch_size=4, steps=steps{passed})

def objective(model, batch):
    return ((model(batch["x"]) - batch["y"]) ** 2).mean(), {{}}
"""


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, assay\n"
        "assert {'train', 'attach', 'TensorBoard'} <= set(dir(assay))\n"
        "print(sorted({'torch', 'web3', 'numpy', 'pydantic'} & set(sys.modules)))\n"
        "try:\n    assay.trian\nexcept AttributeError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nmodule 'assay' has no attribute 'trian'\n"


def test_all_that_is_exported_is_there() -> None:
    assert [name for name in assay.__all__ if not callable(getattr(assay, name))] == ["data"]
    assert [name for name in assay.data.__all__ if not callable(getattr(assay.data, name))] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"steps": 0}, "steps: expected a whole number from 1 on"),
        ({"steps": True}, "steps: expected a whole number"),
        ({"segments": 7}, "expected a number that divides 400 steps, got 7; say segments=8"),
        ({"segments": 401}, "say segments=400"),
        ({"name": "a b"}, "name: String should match pattern"),
        ({"seed": -1}, "seed: Input should be greater than or equal to 0"),
        ({"terms": {"budgets": 5}}, "budgets: Extra inputs are not permitted"),
        ({"terms": {"budget": "much"}}, "budget: "),
        ({"terms": {"stake": 5}}, "beside a stake"),
    ],
)
def test_what_no_task_can_have_is_refused(arguments: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {
        "name": "a",
        "steps": 400,
        "segments": 8,
        "seed": None,
        "terms": None,
    } | arguments
    with pytest.raises(PlanError) as refused:
        _plan(**given)
    assert said in str(refused.value)
    assert "pydantic" not in str(refused.value)


def test_terms_are_those_of_a_file() -> None:
    plan = _plan("a", 400, 8, 3, {"budget": 2.5, "verifiers": 1})
    assert (plan.steps, plan.task.segment_steps, plan.task.seed) == (400, 50, 3)
    assert plan.terms.fields() == {"budget": 5 * TOKEN // 2, "verifiers": 1}


def test_an_unknown_setting_is_refused_before_the_capture() -> None:
    model: Any = None
    with pytest.raises(SettingsError, match="acount"):
        assay.train(model, model, model, {}, batch_size=1, steps=10, acount="dev:1")


# ---------------------------------------------------------------------- where a second task begins


def key(seed: int) -> dict[str, Tensor]:
    words = torch.tensor([seed & 0xFFFFFFFF, seed >> 32], dtype=torch.int64)
    return {"key": words.to(torch.int32)}


@pytest.mark.parametrize(("earlier", "next_one"), [(0, 1), (2**32 - 1, 2**32), (2**64 - 1, 0)])
def test_the_next_seed_is_taken(earlier: int, next_one: int) -> None:
    start = Start(key(earlier), "start")
    assert start.seed == earlier
    assert seed_of(RunTable(name="a", segments=1, segment_steps=1), start) == next_one
    with pytest.raises(StartError, match="the same batches are drawn again"):
        seed_of(RunTable(name="a", segments=1, segment_steps=1, seed=earlier), start)
    assert seed_of(RunTable(name="a", segments=1, segment_steps=1, seed=77), start) == 77
    assert seed_of(RunTable(name="a", segments=1, segment_steps=1), None) == 0


def test_what_is_no_result_is_no_start(tmp_path: Path) -> None:
    (tmp_path / "state.safetensors").write_text("no tensors")
    for place in (tmp_path, tmp_path / "nowhere", tmp_path / "state.safetensors"):
        with pytest.raises(StartError, match="expected the folder of a result"):
            read_start(place)
    save_file({"weight": torch.ones(2)}, tmp_path / "state.safetensors")
    with pytest.raises(StartError, match="with its key"):
        _ = read_start(tmp_path).seed


@pytest.mark.parametrize("status", [TaskStatus.SUBMITTED, TaskStatus.SETTLED])
def test_training_goes_on_only_from_a_settled_result(status: TaskStatus) -> None:
    """A submitted result may still be found false."""
    result = Result(7, status, bytes(32), {}, cast(Any, None), key(3), cast(Any, None))
    if status is TaskStatus.SUBMITTED:
        with pytest.raises(StartError, match="task 7: expected a settled task, got one that is submitted"):
            _start(result)
    else:
        begun = _start(result)
        assert begun is not None
        assert begun.seed == 3


def described(folder: Path, arguments: str, passed: str, more: str) -> Description:
    (folder / "line.py").write_text(MODEL.format(arguments=arguments, passed=passed))
    lines = ["[task]", 'name = "line"', 'source = "line.py"', "segments = 1", "segment_steps = 2", more]
    (folder / "line.toml").write_text("\n".join(lines))
    return read(folder / "line.toml")


def test_a_file_goes_on_from_a_result(tmp_path: Path) -> None:
    first = captured(described(tmp_path, "", "", "seed = 5"))
    state = first.step.step(first.step.initial_state(first.seed))
    words = {"key", "step"}
    kept = {name: t.view(torch.uint32) if name in words else t.contiguous() for name, t in state.items()}
    (tmp_path / "result").mkdir()
    save_file(kept, tmp_path / "result" / "state.safetensors")
    second = captured(described(tmp_path, ", resume=None", ", resume=resume", 'start = "result"'))
    begun = second.step.initial_state(second.seed)
    assert second.seed == 6
    for name in ("weight", "weight.momentum", "bias.momentum"):
        assert torch.equal(begun[name], state[name]), name
    assert int(begun["step"]) == 0
    assert float(state["weight.momentum"].abs().sum()) > 0
    with pytest.raises(SourceError, match="expected it to take resume, for the task file gives start"):
        captured(described(tmp_path, "", "", 'start = "result"'))
    with pytest.raises(StartError, match="nowhere"):
        captured(described(tmp_path, ", resume=None", "", 'start = "nowhere"'))


# ---------------------------------------------------------------------- results, and what is shown


def test_the_models_own_tensors_are_told_from_the_others() -> None:
    names = [
        "0.weight",
        "0.bias",
        "0.weight.exp_avg",
        "0.bias.deep.er",
        "optimizer.0.scale",
        "1.running_mean",
    ]
    state = {name: torch.zeros(1) for name in [*names, "step", "key", "metric.loss", "history"]}
    assert [*model_tensors(state)] == ["0.weight", "0.bias", "1.running_mean"]


def progress(status: str) -> Progress:
    return Progress(1, status, 1, 2, "bidding ends in 5 s", 5, "loss ▁ 1")


def test_a_notebook_shows_one_output_that_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Shown:
        def update(self, data: dict[str, str], raw: bool) -> None:
            assert raw
            shown.append(data["text/plain"])

    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace()
    assert notebook_page() is None, "IPython at a terminal"
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    vars(display)["display"] = lambda *_data, **_options: Shown()
    page = notebook_page()
    assert page is not None
    for number in range(20):
        page.line("event", f"line {number}")
    page.progress(progress("training"))
    page.progress(progress("training"))
    lines = shown[-1].splitlines()
    assert lines[0] == "line 8"
    assert lines[-1] == "task 1: training · 1 of 2 segments · loss ▁ 1 · bidding ends in 5 s"
    assert len(shown) == 21, "what is the same is not shown again"


def test_what_is_told_between_two_waits_is_shown_by_the_next() -> None:
    said: list[object] = []
    listener: Any = SimpleNamespace(
        refreshes=False,
        line=lambda _kind, text, _time=None, **_data: said.append(text),
        points=lambda points: said.append(len(points)),
        progress=lambda _progress: None,
        state=said.append,
    )
    relay, steps = Relay(), list[int]()
    relay.told.add(lambda step, _metrics: steps.append(step))
    relay.line("event", "posted")
    relay.points([Point(1, 3, b"a", {"loss": 1.0})])
    relay.state("nobody looks")
    assert (said, steps, relay.refreshes) == ([], [], False)
    relay.begin(listener, None)
    relay.points([Point(2, 6, b"b", {"loss": 0.5})])
    relay.end()
    relay.line("event", "bid")
    assert (said, steps) == (["posted", 1], [3, 6])
    seen: list[str] = []
    relay.begin(None, lambda progress: seen.append(progress.status))
    assert relay.refreshes
    relay.progress(progress("bidding"))
    assert seen == ["bidding"]
