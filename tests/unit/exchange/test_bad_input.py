"""Bad input from others raises a typed error that says what was expected, before any training."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.lanes.processes import account, members_file
from protocol.commitments.chunks import tensor_root
from protocol.exchange.announcements import Announcement
from protocol.exchange.errors import Equivocation, JobError, MessageError
from protocol.exchange.jobs import FILE, LaneJob, load_job, write_job
from protocol.exchange.lane import TABLE, Lane
from protocol.exchange.members import Members
from protocol.exchange.messages import require_message, tensor_of
from protocol.exchange.shelf import Shelf, tensor_name
from protocol.lanes import LanesError, MembershipError
from protocol.lanes.splitting import COUNT, EXPONENT, INDEX, VALUE
from protocol.node.stopping import Stop
from protocol.numerics.rows import SENTINEL
from protocol.numerics.types import to_bytes
from protocol.program.step import State
from protocol.tasks.bundles import BundleError
from tests.exchange.world import SEED, captured_step, written_job

ROUNDS = 2
URLS = [[f"http://127.0.0.1:{9_000 + lane}"] for lane in range(3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("job")


@pytest.fixture(scope="module")
def job(folder: Path) -> LaneJob:
    return written_job(folder / "job", ROUNDS)


@pytest.fixture(scope="module")
def state(job: LaneJob) -> State:
    """The state of lane 1 after round 0."""
    lanes = job.lanes
    initial = lanes.initial_state(job.seeds[1], 1)
    return lanes.train(initial, [lanes.nothing()] * lanes.width, job.interpreter())


@pytest.fixture
def members(job: LaneJob, tmp_path: Path) -> Members:
    return Members.read(members_file(tmp_path / "members.json", URLS), job)


def announced(job: LaneJob, state: State, signer: int = 1, lane: int = 1, number: int = 0) -> Announcement:
    return Announcement.signed(account(signer), job.id, 0, number, lane, job.lanes.inner.tensor_roots(state))


# messages


def test_what_emit_makes_is_a_message(job: LaneJob, state: State) -> None:
    require_message(job.lanes, job.lanes.message(state), "message")


def _changed(
    name: str, change: Callable[[Tensor], Tensor]
) -> Callable[[LaneJob, Sequence[Tensor]], list[Tensor]]:
    def changed(job: LaneJob, message: Sequence[Tensor]) -> list[Tensor]:
        by_name = dict(zip(job.lanes.message_types, message, strict=True))
        return [*(by_name | {name: change(by_name[name].clone())}).values()]

    return changed


WRONG: dict[str, tuple[Callable[[LaneJob, Sequence[Tensor]], list[Tensor]], str]] = {
    "too few tensors": (lambda _, message: [*message[:-1]], "expected 4 tensors, got 3"),
    "length": (_changed(VALUE, lambda x: x[:-1]), "expected u8"),
    "type": (_changed(VALUE, lambda x: x.to(torch.int32)), "expected u8"),
    "index": (_changed(INDEX, lambda x: x.fill_(8)), "expected 0 to 7, got 8 to 8"),
    "exponent": (_changed(EXPONENT, lambda x: x.fill_(1)), "expected -95 to 0, got 1 to 1"),
    "exponent below": (_changed(EXPONENT, lambda x: x.fill_(-96)), "expected -95 to 0, got -96"),
    "count": (_changed(COUNT, lambda x: x.fill_(2.0)), "expected 1, got 2.0"),
    "count that is NaN": (_changed(COUNT, lambda x: x.fill_(float("nan"))), "expected 1, got nan"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_message_that_emit_cannot_make_is_refused(job: LaneJob, state: State, what: str) -> None:
    change, said = WRONG[what]
    with pytest.raises(MessageError, match=said):
        require_message(job.lanes, change(job, job.lanes.message(state)), "message")


def test_a_training_without_numbers_is_a_message(job: LaneJob, state: State) -> None:
    broken = dict(state) | {name: torch.full_like(state[name], float("nan")) for name in job.lanes.parameters}
    emitted = job.lanes.emit.step(broken, (), job.interpreter())
    assert (emitted[EXPONENT] == SENTINEL).any()
    require_message(job.lanes, job.lanes.message(emitted), "message")


def test_bytes_of_a_tensor(job: LaneJob, state: State) -> None:
    type_ = job.lanes.message_types[COUNT]
    data = to_bytes(state[COUNT], type_.dtype)
    root = tensor_root(data)
    assert torch.equal(tensor_of(data, type_, root, "count"), state[COUNT])
    with pytest.raises(MessageError, match="expected 4 bytes"):
        tensor_of(data + b"\0", type_, root, "count")
    with pytest.raises(MessageError, match="expected root"):
        tensor_of(b"\1" + data[1:], type_, root, "count")
    strange = b"\1\0\xc0\x7f"
    with pytest.raises(MessageError, match="canonical"):
        tensor_of(strange, type_, tensor_root(strange), "count")


# announcements


def test_an_announcement_is_what_was_signed(job: LaneJob, members: Members, state: State) -> None:
    made = announced(job, state)
    read = Announcement.parse(made.encode())
    assert read == made
    read.require(job, members, 0, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: replace(a, job=bytes(32)), "expected job"),
        (lambda a: replace(a, run=1), "expected run 0, got 1"),
        (lambda a: replace(a, number=1), "expected round 0, got 1"),
        (lambda a: replace(a, lane=2), "expected lane 1, got 2"),
        (lambda a: replace(a, roots=a.roots[:-1]), "expected tensors in its state"),
        (lambda a: replace(a, roots=(bytes(32), *a.roots[1:])), "expected a signature of 0x"),
        (lambda a: replace(a, signature=bytes(65)), "got none that is valid"),
        (lambda a: replace(a, signature=a.signature[:64] + b"\x07"), "got none that is valid"),
    ],
)
def test_an_announcement_of_something_else_is_refused(
    job: LaneJob, members: Members, state: State, change: Callable[[Announcement], Announcement], said: str
) -> None:
    with pytest.raises(MessageError, match=said):
        change(announced(job, state)).require(job, members, 0, 1)


def test_a_stranger_is_refused(job: LaneJob, members: Members, state: State) -> None:
    with pytest.raises(
        MessageError, match=f"expected a signature of {account(1).address}, got {account(9).address}"
    ):
        announced(job, state, signer=9).require(job, members, 0, 1)


def test_what_was_signed_for_a_run_is_refused_in_another(
    job: LaneJob, members: Members, state: State
) -> None:
    made, again = announced(job, state), replace(members, run=1)
    with pytest.raises(MessageError, match="expected run 1, got 0"):
        made.require(job, again, 0, 1)
    with pytest.raises(MessageError, match="expected a signature of 0x"):
        replace(made, run=1).require(job, again, 0, 1)


def test_a_lane_that_is_away_is_refused(job: LaneJob, state: State, tmp_path: Path) -> None:
    rows = [["counts", "away", "counts"], ["counts"] * 3]
    found = Members.read(members_file(tmp_path / "members.json", URLS, rows), job)
    with pytest.raises(MessageError, match="not a member of it"):
        announced(job, state).require(job, found, 0, 1)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"\xff", b'{"format":"assay-round"}', b"[" * 100_000, b'{"number":1e999}'],
    ids=["empty", "list", "no text", "fields missing", "deep", "infinite"],
)
def test_bytes_that_are_no_announcement_are_refused(data: bytes) -> None:
    with pytest.raises(MessageError, match="form of a round's announcement"):
        Announcement.parse(data)


def test_two_states_of_one_round_are_not_kept(job: LaneJob, state: State, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    first = announced(job, state)
    shelf.announce(first)
    shelf.announce(first)
    other = Announcement.signed(account(1), job.id, 0, 0, 1, (bytes(32), *first.roots[1:]))
    with pytest.raises(Equivocation, match=first.state_root.hex()):
        shelf.announce(other)
    assert shelf.announced(0, 1) == first


def test_damaged_files_are_as_if_they_were_not_there(job: LaneJob, state: State, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "shelf")
    shelf.announce(announced(job, state))
    data = b"some bytes"
    root = tensor_root(data)
    shelf.put(root, data)
    for path in (tmp_path / "shelf").rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    assert shelf.announced(0, 1) is None
    assert shelf.tensor(root) is None
    shelf.put(root, data)
    assert shelf.tensor(root) == data


def test_a_tensor_that_lies_here_unpublished_is_published_with_a_message(tmp_path: Path) -> None:
    """Two tensors can have the same bytes: here a metric of 1.0, which is kept without being published, and
    the count in a message, which must still be published.
    """
    written: list[str] = []

    class Bucket:
        def write(self, name: str, data: bytes) -> None:
            assert tensor_root(data).hex() in name
            written.append(name)

    shelf, data = Shelf(tmp_path / "shelf", Bucket()), b"\0\0\x80?"
    root = tensor_root(data)
    shelf.put(root, data, publish=False)
    assert not written
    shelf.put(root, data)
    assert written == [tensor_name(root)]


# files of members and jobs


def _members(change: Callable[[dict[str, Any]], Any], tmp_path: Path) -> Path:
    path = members_file(tmp_path / "members.json", URLS, [["counts"] * 3] * ROUNDS)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda d: d.update(version=2), JobError, "version"),
        (lambda d: d.update(further=1), JobError, "further"),
        (lambda d: d.update(run=-1), JobError, "run: .* greater than or equal to 0"),
        (lambda d: d["lanes"][0].update(account="0x12"), JobError, "account"),
        (lambda d: d["lanes"][0].update(account=d["lanes"][0]["account"].lower()), JobError, "checksum"),
        (lambda d: d["lanes"][0].update(account=d["lanes"][1]["account"]), JobError, "got one twice"),
        (lambda d: d["lanes"][0].update(urls=["ftp://here"]), JobError, "http or https"),
        (lambda d: d["lanes"].pop(), MembershipError, "expected 3 lanes"),
        (lambda d: d["rounds"].pop(), MembershipError, "expected 2 rounds"),
        (lambda d: d["rounds"].extend([["counts"] * 3] * 2), MembershipError, "expected 2 rounds, .* got 4"),
        (
            lambda d: (
                d["rounds"].__setitem__(1, ["counts", "away", "counts"]) or d["rounds"].append(["counts"] * 3)
            ),
            MembershipError,
            "in the row of the result, got lane 1",
        ),
        (lambda d: d["rounds"][1].pop(), MembershipError, "expected 3 lanes in round 1"),
        (lambda d: d["rounds"][0].__setitem__(0, "here"), MembershipError, "'here'"),
        (lambda d: d["rounds"].__setitem__(0, ["away"] * 3), MembershipError, "trains in round 0"),
    ],
)
def test_a_file_of_members_that_does_not_fit_is_refused(
    job: LaneJob, tmp_path: Path, change: Callable[[dict[str, Any]], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        Members.read(_members(change, tmp_path), job)


def test_a_file_that_is_not_there(job: LaneJob, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="No such file"):
        Members.read(tmp_path / "none", job)
    with pytest.raises(JobError, match="No such file"):
        load_job(tmp_path)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"density": "1/3"}, JobError, "density"),
        ({"rounds": 0}, JobError, "rounds"),
        ({"width": 17}, LanesError, "1 to 16 lanes"),
        ({"bundle": "00" * 32}, BundleError, "bundle hash"),
        ({"parameters": ["step"]}, LanesError, "names of f32 tensors"),
        ({"parameters": []}, JobError, "parameters"),
        ({"most_exponent": 128}, JobError, "most_exponent: .* less than or equal to 127"),
        ({"most_exponent": 2_000}, JobError, "most_exponent: .* less than or equal to 127"),
        ({"most_exponent": -96}, JobError, "most_exponent: .* greater than or equal to -95"),
        ({"rate": float("nan")}, JobError, "rate: .* finite"),
        ({"rate": float("inf")}, JobError, "rate: .* finite"),
        ({"rate": 1e39}, LanesError, "rate: expected a number of f32"),
        ({"decay": float("-inf")}, JobError, "decay: .* finite"),
        ({"decay": -1e39}, LanesError, "decay: expected a number of f32"),
        ({"rounds": (1 << 20) + 1}, JobError, "rounds: .* less than or equal to 1048576"),
    ],
)
@pytest.mark.usefixtures("job")
def test_a_job_that_does_not_fit_is_refused(
    folder: Path, tmp_path: Path, change: dict[str, Any], error: type[Exception], said: str
) -> None:
    (tmp_path / "bundle").symlink_to(folder / "job" / "bundle")
    (tmp_path / FILE).write_text(json.dumps(json.loads((folder / "job" / FILE).read_text()) | change))
    with pytest.raises(error, match=said):
        load_job(tmp_path)


def test_nothing_is_written_for_numbers_that_lanes_do_not_have(tmp_path: Path) -> None:
    with pytest.raises(LanesError, match="density"):
        write_job(
            captured_step(),
            tmp_path / "job",
            name="small",
            width=2,
            density=Fraction(1, 3),
            inner_steps=1,
            rounds=1,
            seed=SEED,
        )
    assert not (tmp_path / "job").exists()


@pytest.mark.usefixtures("job")
def test_a_job_is_not_written_over(folder: Path) -> None:
    with pytest.raises(JobError, match="without a job"):
        written_job(folder / "job", ROUNDS)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"most_exponent": 128}, LanesError, "most_exponent: expected -95 to 127, got 128"),
        ({"most_exponent": -96}, LanesError, "most_exponent: expected -95 to 127, got -96"),
        ({"rate": float("nan")}, LanesError, "rate: expected a number of f32, got nan"),
        ({"decay": float("inf")}, LanesError, "decay: expected a number of f32, got inf"),
        ({"rounds": (1 << 20) + 1}, JobError, "rounds: .* less than or equal to 1048576"),
        ({"seed": -1}, JobError, "seed: .* greater than or equal to 0"),
    ],
)
def test_nothing_is_written_for_numbers_that_no_job_has(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], said: str
) -> None:
    given: dict[str, Any] = {"width": 2, "density": Fraction(1), "inner_steps": 1, "rounds": 1, "seed": SEED}
    with pytest.raises(error, match=said):
        write_job(captured_step(), tmp_path / "job", name="small", **given | change)
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize("most_exponent", [-95, 127])
def test_a_message_under_the_least_and_the_largest_cut_is_accepted(
    tmp_path: Path, most_exponent: int
) -> None:
    numbers: dict[str, Any] = {
        "width": 2,
        "density": Fraction(1),
        "inner_steps": 1,
        "rounds": 1,
        "seed": SEED,
    }
    write_job(captured_step(), tmp_path, name="small", most_exponent=most_exponent, **numbers)
    job = load_job(tmp_path)
    initial, nothing = job.lanes.initial_state(SEED, 0), job.lanes.nothing()
    trained = job.lanes.train(initial, [nothing] * 2, job.interpreter())
    assert trained[VALUE].any()
    require_message(job.lanes, job.lanes.message(trained), "message")


# lanes


def lane(job: LaneJob, members: Members, shelf: Shelf, number: int = 1, signer: int = 1) -> Lane:
    return Lane(job, members, number, account(signer), shelf, Stop())


def test_a_lane_of_another_account_does_not_begin(job: LaneJob, members: Members, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=account(1).address):
        lane(job, members, Shelf(tmp_path / "shelf"), signer=2)
    with pytest.raises(JobError, match="from 0 to 2, got 3"):
        lane(job, members, Shelf(tmp_path / "shelf"), number=3)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'[["counts"',
        b"\xff",
        b"{}",
        b'["counts"]',
        b"[[1]]",
        b'[["counts"]]',
        b'[["counts","counts","counts"]]' * 2,
    ],
)
def test_a_damaged_record_of_past_rounds_is_named(
    job: LaneJob, members: Members, tmp_path: Path, data: bytes
) -> None:
    shelf = Shelf(tmp_path / "shelf")
    (shelf.folder / TABLE).write_bytes(data)
    with pytest.raises(JobError, match=r"table\.json"):
        lane(job, members, shelf)


def test_a_record_of_more_rounds_than_the_job_has_is_refused(
    job: LaneJob, members: Members, tmp_path: Path
) -> None:
    shelf = Shelf(tmp_path / "shelf")
    (shelf.folder / TABLE).write_text(json.dumps([["counts"] * 3] * (ROUNDS + 1)))
    with pytest.raises(JobError, match=r"table\.json: expected at most 2 rounds, got 3"):
        lane(job, members, shelf)
