"""Every endpoint is compared with the run itself, and requests that no honest client sends are refused."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from protocol.commitments import CHUNK, segment_tree, state_tree, step_tree, tensor_root, trace_tree
from protocol.execution.replay import Replay
from protocol.execution.turns import InTurns, Scheduled, Turns
from protocol.program.opcodes import Op
from solver import answers
from solver.catalog import Catalog
from solver.metrics import Metrics
from solver.run_store import RunStore
from solver.server import application
from solver.training import Training
from tests.unit.solver import tiny
from tests.unit.solver.asking import get, roots

T = tiny.TASK


@pytest.fixture(scope="module")
def run_store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return tiny.trained(tmp_path_factory.mktemp("solver"))


@pytest.fixture
def catalog(run_store: RunStore, tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "bundles", Metrics(), Turns())
    catalog.put(run_store)
    return catalog


def test_overview_and_segments_are_the_committed_tree(run_store: RunStore, catalog: Catalog) -> None:
    overview, segments = get(application(catalog), f"/tasks/{T}", f"/tasks/{T}/segments")
    assert roots(segments) == run_store.roots()
    assert overview.json() == {
        "version": 1,
        "task": T,
        "segments": tiny.SEGMENTS,
        "segment_steps": tiny.STEPS,
        "committed_segments": tiny.SEGMENTS,
        "size": tiny.SEGMENTS + 1,
        "root": "0x" + segment_tree(run_store.roots()).root.hex(),
    }


@pytest.mark.parametrize("number", range(tiny.SEGMENTS + 1))
def test_checkpoints_fold_to_their_roots(run_store: RunStore, catalog: Catalog, number: int) -> None:
    base = f"/tasks/{T}/checkpoints/{number}"
    manifest, *tensors = get(application(catalog), base, f"{base}/tensors/0", f"{base}/tensors/1")
    found = [tensor_root(answer.content) for answer in tensors]
    assert state_tree(found).root == run_store.roots()[number]
    entries = manifest.json()["tensors"]
    assert [entry["root"] for entry in entries] == ["0x" + root.hex() for root in found]
    assert [(e["name"], e["dtype"], e["shape"], e["bytes"]) for e in entries] == [
        ("weights", "f32", [300], 1200),
        ("count", "i32", [], 4),
    ]


def test_result_is_the_last_checkpoint(run_store: RunStore, catalog: Catalog) -> None:
    result, last = get(application(catalog), f"/tasks/{T}/result", f"/tasks/{T}/checkpoints/{tiny.SEGMENTS}")
    assert result.json() == last.json()
    assert result.json()["state_root"] == "0x" + run_store.roots()[-1].hex()


def test_insides_of_every_segment_fold_to_their_roots(run_store: RunStore, catalog: Catalog) -> None:
    for i in range(1, tiny.SEGMENTS + 1):
        base = f"/tasks/{T}/segments/{i}/steps"
        steps, *states = get(
            application(catalog), base, *(f"{base}/{j}/state" for j in range(tiny.STEPS + 1))
        )
        found = roots(steps)
        assert (found[0], found[-1]) == (run_store.roots()[i - 1], run_store.roots()[i])
        assert step_tree(found).root == step_tree(list(run_store.replay().step_roots(i))).root
        assert [state_tree(roots(state)).root for state in states] == found


def test_traces_and_values_of_every_frame(run_store: RunStore, catalog: Catalog) -> None:
    frame = run_store.replay().frame(2, 3)
    call = next(iter(run_store.program.program.calls()))
    for path, expected in (("", frame), (str(call), frame.callee(call))):
        base = f"/tasks/{T}/segments/2/steps/3"
        (trace,) = get(application(catalog), f"{base}/trace?path={path}")
        assert trace_tree(roots(trace)).root == expected.tree.root
        values = get(
            application(catalog), *(f"{base}/values/{leaf}?path={path}" for leaf in range(expected.tree.size))
        )
        assert [tensor_root(value.content) for value in values] == roots(trace)


def test_groups_are_the_tensors_one_after_the_other(run_store: RunStore, catalog: Catalog) -> None:
    app, base = application(catalog), f"/tasks/{T}/checkpoints/3/groups"
    both, none = get(app, f"{base}/0", f"{base}/1")
    assert both.content == run_store.tensor(3, 0) + run_store.tensor(3, 1)
    assert none.status_code == 404


def test_a_tensor_that_is_a_group_of_its_own_is_sent_from_the_disk(
    run_store: RunStore, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_store, "groups", [range(1), range(1, 2)])
    base = f"/tasks/{T}/checkpoints/3/groups"
    monkeypatch.delattr(RunStore, "group")
    answers = get(application(catalog), f"{base}/0", f"{base}/1", f"{base}/2")
    assert [answer.content for answer in answers[:2]] == [run_store.tensor(3, k) for k in range(2)]
    assert answers[2].status_code == 404


def test_chunk_ranges(run_store: RunStore, catalog: Catalog) -> None:
    base = f"/tasks/{T}/checkpoints/3/tensors/0?chunk="
    data = run_store.tensor(3, 0)
    answers = get(application(catalog), base + "0:1", base + "1:2", base + "0:2", base + "1:3", base + "1:1")
    assert [a.content for a in answers[:3]] == [data[:CHUNK], data[CHUNK:], data]
    assert [a.status_code for a in answers] == [200, 200, 200, 416, 416]


def test_a_range_of_too_many_chunks_is_refused_before_anything_is_read(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_CHUNKS", 1)
    monkeypatch.delattr(RunStore, "chunks")
    (refused,) = get(application(catalog), f"/tasks/{T}/checkpoints/3/tensors/0?chunk=0:2")
    assert refused.status_code == 416


HOSTILE = [
    "/tasks/0",
    "/tasks/8",
    "/tasks/-1",
    "/tasks/9223372036854775808",
    f"/tasks/{'9' * 900}",
    "/tasks/seven",
    "/tasks/7/checkpoints/4",
    "/tasks/7/checkpoints/-1",
    "/tasks/7/checkpoints/4294967296",
    "/tasks/7/checkpoints/1/tensors/2",
    "/tasks/7/checkpoints/1/groups/1",
    "/tasks/7/checkpoints/1/groups/-1",
    "/tasks/7/checkpoints/4/groups/0",
    "/tasks/7/checkpoints/1/tensors/0?chunk=0",
    "/tasks/7/checkpoints/1/tensors/0?chunk=-1:2",
    "/tasks/7/segments/0/steps",
    "/tasks/7/segments/4/steps",
    "/tasks/7/segments/1/steps/5/state",
    "/tasks/7/segments/1/steps/0/trace",
    "/tasks/7/segments/1/steps/5/trace",
    "/tasks/7/segments/1/steps/1/trace?path=0",
    "/tasks/7/segments/1/steps/1/trace?path=99999",
    "/tasks/7/segments/1/steps/1/trace?path=3,3",
    "/tasks/7/segments/1/steps/1/trace?path=-3",
    "/tasks/7/segments/1/steps/1/trace?path=1,2,3,4,5,6,7,8,9",
    "/tasks/7/segments/1/steps/1/trace?path=%D9%A3",
    "/tasks/7/segments/1/steps/1/values/999",
    "/tasks/7/segments/1/steps/1/values/-1",
    "/bundles/../solver.sqlite",
    "/bundles/" + "0" * 64 + "/manifest.json",
    "/bundles/" + "a" * 64 + "/../../secret",
    "/bundles/" + "a" * 64 + "/%2e%2e/%2e%2e/secret",
    "/bundles/" + "a" * 64 + "//etc/passwd",
    "/bundles/" + "a" * 64 + "/%00",
    "/bundles/" + "a" * 64 + "/..",
    "/nothing",
]


@pytest.mark.parametrize("target", HOSTILE)
def test_hostile_questions_are_refused_without_an_error_inside(
    catalog: Catalog, tmp_path: Path, target: str
) -> None:
    (tmp_path / "bundles" / ("a" * 64)).mkdir(parents=True)
    (tmp_path / "secret").write_text("not yours")
    (answer,) = get(application(catalog), target)
    assert 400 <= answer.status_code < 500
    assert b"not yours" not in answer.content


def test_bodies_methods_and_long_targets_are_refused(catalog: Catalog) -> None:
    app = application(catalog)
    assert get(app, f"/tasks/{T}", content=b"x" * 10)[0].status_code == 413
    assert get(app, f"/tasks/{T}", method="POST")[0].status_code == 405
    assert get(app, f"/tasks/{T}?" + "x" * 2000)[0].status_code == 414


def test_uncommitted_checkpoints_are_not_shown(tmp_path: Path) -> None:
    kept = tiny.run_store(tmp_path, tiny.database(tmp_path))
    training = Training(kept, tiny.initial)
    training.segment(lambda _number, _state: None)
    training.segment(lambda _number, _state: None)
    training.close()
    kept.commit(2)
    catalog = Catalog(tmp_path / "bundles", Metrics(), Turns())
    catalog.put(kept)
    targets = ["segments", "checkpoints/1", "checkpoints/2", "segments/1/steps", "segments/2/steps", "result"]
    answers = get(application(catalog), *(f"/tasks/{T}/{target}" for target in targets))
    assert roots(answers[0]) == kept.roots(2)
    assert [a.status_code for a in answers] == [200, 200, 404, 200, 404, 404]


def test_bundles_are_served_and_monitoring_is_not(catalog: Catalog, tmp_path: Path) -> None:
    app = application(catalog)
    folder = tmp_path / "bundles" / ("a" * 64)
    (folder / "tensors").mkdir(parents=True)
    (folder / "tensors" / "0").write_bytes(b"data")
    catalog.ready = True
    bundle, *others = get(app, "/bundles/" + "a" * 64 + "/tensors/0", "/healthz", "/readyz", "/metrics")
    assert bundle.content == b"data"
    assert [a.status_code for a in others] == [404] * 3
    counted = catalog.metrics.registry.get_sample_value
    assert counted("assay_solver_requests_total", {"status": "200"}) == 1
    assert counted("assay_solver_requests_total", {"status": "404"}) == 3


def test_what_a_frame_does_not_keep_waits_for_a_turn(catalog: Catalog, run_store: RunStore) -> None:
    place = f"/tasks/{T}/segments/2/steps/3"
    call = next(n for n, at in enumerate(run_store.program.program.instructions) if at.op is Op.CALL)
    catalog.turns.close()
    busy = get(application(catalog), f"{place}/trace", f"{place}/trace?path={call}", f"{place}/values/0")
    assert [answer.status_code for answer in busy] == [503] * 3


@pytest.mark.parametrize("what", ["steps", "steps/3/state", "steps/3/trace", "steps/3/values/0"])
def test_a_question_of_a_stranger_rests_while_a_training_is_scheduled(
    run_store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The rest after a long answer would be too long to wait for, so the next question is refused as busy."""
    now, replay = [0.0], RunStore.replay

    def slow(self: RunStore) -> Replay:
        now[0] += 10.0
        return replay(self)

    monkeypatch.setattr(RunStore, "replay", slow)
    catalog = Catalog(tmp_path / "bundles", Metrics(), Turns(clock=lambda: now[0]))
    catalog.put(run_store)
    app, base = application(catalog), f"/tasks/{T}/segments/2"
    with catalog.turns.scheduled(Scheduled(1000.0)):
        first, refused = get(app, f"{base}/steps", f"{base}/{what}")
        now[0] += 90.0
        (rested,) = get(app, f"{base}/{what}")
    assert [answer.status_code for answer in (first, refused, rested)] == [200, 503, 200]


def test_what_a_frame_does_not_keep_waits_for_a_turn_on_its_tasks_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, turns, devices = tiny.trained(tmp_path), Turns(), list[str]()
    executor = InTurns(kept.executor, turns, device="cuda:1")
    kept.retire(lambda: (tiny.fixed(), executor))
    catalog = Catalog(tmp_path / "bundles", Metrics(), turns)
    catalog.put(kept)
    ordinary = turns.ordinary

    def noting(device: str = "") -> AbstractContextManager[None]:
        devices.append(device)
        return ordinary(device)

    monkeypatch.setattr(turns, "ordinary", noting)
    (trace,) = get(application(catalog), f"/tasks/{T}/segments/2/steps/3/trace")
    assert trace.status_code == 200
    assert set(devices) == {"cuda:1"}
