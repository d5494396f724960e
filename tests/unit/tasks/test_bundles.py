"""Bundles load as written, and any change by a stranger is refused by name before anything runs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

from protocol.commitments import BlobStore
from protocol.commitments.mapping import Maps
from protocol.commitments.store import LARGE, SMALL
from protocol.commitments.tensors import Tensor
from protocol.numerics.types import DType
from protocol.program import Builder, Program, StepProgram, TensorType
from protocol.program.library import Hint
from protocol.tasks.bundles import (
    Bundle,
    BundleError,
    BundleMalformed,
    BundleMismatch,
    BundleTooLarge,
    BundleUnavailable,
    Limits,
    NoMapsYet,
    WrongFile,
    committed_terms,
    fetch_bundle,
    load_bundle,
    require_terms,
    write_bundle,
)
from protocol.tasks.bundles.bundle import Held
from tests.chain.trees import terms
from tests.vectors.generate_bundles import half, step

ROW = TensorType(DType.F32, (300,))

Manifest = dict[str, Any]


def bundle() -> Bundle:
    row = torch.arange(300, dtype=torch.float32).numpy()
    zero = Tensor("count", int(DType.I32), (), bytes(4))
    of = half(ROW)
    return Bundle(
        "tiny",
        step(of),
        (Tensor.from_array("weights", row), zero),
        (Tensor.from_array("data", row / 7),),
        (Tensor.from_array("rate", row / 9),),
        {of.id: Hint("half", {"rounds": 3, "scale": 0.5, "exact": True})},
    )


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    path = tmp_path_factory.mktemp("template") / "bundle"
    return path, write_bundle(bundle(), path)


@pytest.fixture
def folder(template: tuple[Path, bytes], tmp_path: Path) -> Path:
    """A copy of the written bundle for one test."""
    return Path(shutil.copytree(template[0], tmp_path / "bundle"))


@pytest.fixture
def bundle_hash(template: tuple[Path, bytes]) -> bytes:
    return template[1]


def fetched(folder: Path, bundle_hash: bytes, limits: Limits | None = None) -> Bundle:
    """Fetch the bundle from `folder` into the store beside it, as if it were a stranger's."""
    limits = limits or Limits()
    allowed = replace(limits, allowed=(folder.parent.as_uri(),))
    return fetch_bundle(folder.as_uri(), bundle_hash, BlobStore(folder.parent / "store"), allowed)


def rewrite(folder: Path, change: Callable[[Manifest], None]) -> bytes:
    """Change the manifest in place, and return its new hash. A fetch with this hash does not fail on the
    hash, so only the change itself can be the reason for a refusal.
    """
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_text(json.dumps(manifest))
    return sha256(path.read_bytes()).digest()


def put(folder: Path, data: bytes) -> str:
    return BlobStore(folder / "blobs").put(data)


def of_tensors(count: int, elements: int) -> Bundle:
    """A bundle whose state has `count` distinct tensors."""
    type_ = TensorType(DType.I32, (elements,))
    b = Builder("step")
    *inputs, constant = [b.input(type_) for _ in range(count + 1)]
    for x in inputs:
        b.output(b.add(x, constant))
    names = [f"state.{i}" for i in range(count)]
    state = tuple(
        Tensor(name, int(DType.I32), type_.shape, i.to_bytes(4, "little") * elements)
        for i, name in enumerate(names)
    )
    one = Tensor("one", int(DType.I32), type_.shape, (1).to_bytes(4, "little") * elements)
    program = StepProgram(b.build(), tuple(names), datasets=0, constants=1)
    return Bundle("many", program, state, (), (one,))


@pytest.mark.parametrize("elements", [1, 4_096])
def test_a_bundle_of_many_tensors_keeps_no_file_open(elements: int, tmp_path: Path) -> None:
    """A fetched bundle of many tensors keeps no file open. Otherwise a stranger's bundle could use up all
    files that a node may open.
    """
    many = of_tensors(400, elements)
    bundle_hash = write_bundle(many, tmp_path / "bundle")
    before = len(os.listdir("/proc/self/fd"))
    back = fetched(tmp_path / "bundle", bundle_hash)
    assert len(os.listdir("/proc/self/fd")) == before
    assert back.state == many.state


def test_a_bundle_without_dataset_and_constants_is_not_written(tmp_path: Path) -> None:
    b = Builder("step")
    b.output(b.add(b.input(ROW), b.f32(0x3F800000)))
    state = (Tensor("row", int(ROW.dtype), ROW.shape, bytes(ROW.nbytes)),)
    made = Bundle("alone", StepProgram(b.build(), ("row",), datasets=0, constants=0), state, (), ())
    with pytest.raises(BundleMalformed, match="at least one dataset tensor or constant"):
        write_bundle(made, tmp_path / "bundle")


def test_a_bundle_of_many_tensors_leaves_maps_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = Maps(most=8)
    monkeypatch.setattr("protocol.commitments.store._MAPS", maps)
    monkeypatch.setattr("protocol.tasks.bundles.fetch.MAPS_EACH", 4)
    folders = {}
    for count, nbytes in ((4, SMALL), (5, SMALL), (4, LARGE), (5, LARGE), (4, 2 * LARGE)):
        folder = tmp_path / f"{count}-{nbytes}"
        folders[count, nbytes] = (
            folder / "bundle",
            write_bundle(of_tensors(count, nbytes // 4), folder / "bundle"),
        )
    with pytest.raises(BundleTooLarge, match="distinct tensors of 65536 bytes or more"):
        fetched(*folders[5, LARGE])
    mapped = fetched(*folders[4, SMALL])
    assert len(maps) == 4
    read = fetched(*folders[5, SMALL])
    assert len(maps) == 4, "none of them is mapped"
    large = fetched(*folders[4, LARGE])
    assert len(maps) == 8
    assert fetched(*folders[4, LARGE]).state == large.state, "the same files take no further maps"
    with pytest.raises(NoMapsYet):
        fetched(*folders[4, 2 * LARGE])
    assert (len(mapped.state), len(read.state), len(large.state)) == (4, 5, 4)
    del mapped
    assert len(fetched(*folders[4, 2 * LARGE]).state) == 4
    assert (read.held, large.held) == (Held(0, 5 * SMALL), Held(4, 0))


def test_a_bundle_comes_back_whole(folder: Path, bundle_hash: bytes) -> None:
    made = bundle()
    back = fetched(folder, bundle_hash)
    assert back.step.program == made.step.program
    assert (back.name, back.state, back.dataset, back.constants) == (
        made.name,
        made.state,
        made.dataset,
        made.constants,
    )
    assert back.hints == made.hints
    assert committed_terms(back) == committed_terms(made)
    assert [program.name for program in back.step.program.closure()] == ["half", "step"]
    assert torch.equal(back.initial_state()["weights"], torch.arange(300, dtype=torch.float32))
    assert [tensor.shape for tensor in back.fixed()] == [(300,), (300,)]
    assert load_bundle(folder).state == made.state


def test_writing_twice_gives_the_same_hash(tmp_path: Path) -> None:
    assert write_bundle(bundle(), tmp_path / "a") == write_bundle(bundle(), tmp_path / "b")


def test_a_store_that_holds_everything_needs_no_server(
    folder: Path, bundle_hash: bytes, tmp_path: Path
) -> None:
    fetched(folder, bundle_hash)
    for blob in (folder / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    assert fetched(folder, bundle_hash).name == "tiny"
    assert BlobStore(tmp_path / "store").has(bundle_hash.hex())


def test_terms_that_misstate_the_work_are_named(bundle_hash: bytes) -> None:
    made = bundle()
    honest = terms(bundle_hash=bundle_hash, bundle="http://127.0.0.1:1", **committed_terms(made))
    require_terms(made, honest)
    changes: list[tuple[str, Any]] = [
        ("step_operations", honest.step_operations + 1),
        ("state_bytes", honest.state_bytes - 1),
        ("state_tensors", 3),
        ("constants", 1),
        ("program_id", bytes(31) + b"\1"),
        ("constants_root", bytes(31) + b"\1"),
        ("initial_state", bytes(31) + b"\1"),
    ]
    for name, wrong in changes:
        with pytest.raises(BundleMismatch, match=name):
            require_terms(made, replace(honest, **{name: wrong}))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda m: m.update(version=2), BundleMalformed, "version"),
        (lambda m: m.update(format="other"), BundleMalformed, "format"),
        (lambda m: m.update(surprise=1), BundleMalformed, "surprise"),
        (lambda m: m.pop("state"), BundleMalformed, "state"),
        (lambda m: m.update(name="../../etc"), BundleMalformed, "name"),
        (lambda m: m.update(arithmetic=2), BundleMismatch, "arithmetic"),
        (lambda m: m["state"][0].update(name="a/../b\x1b[2J"), BundleMalformed, "name"),
        (lambda m: m["state"][0].update(blob="../../../etc/passwd"), BundleMalformed, "blob"),
        (lambda m: m["state"][0].update(shape=[0]), BundleMalformed, "shape"),
        (lambda m: m["state"][0].update(shape=[2**31 - 1, 2**31 - 1]), BundleMalformed, "weights"),
        (lambda m: m["state"][0].update(shape=[2**31 - 1, 100]), BundleTooLarge, "tensors"),
        (lambda m: m["state"][0].update(shape=[1] * 9), BundleMalformed, "shape"),
        (lambda m: m["state"][0].update(shape=[True]), BundleMalformed, "shape"),
        (lambda m: m["state"][0].update(shape=[150, 2]), BundleMismatch, "type of weights"),
        (lambda m: m["state"][0].update(dtype="i32"), BundleMismatch, "type of weights"),
        (lambda m: m["state"][0].update(dtype="f64"), BundleMalformed, "dtype"),
        (lambda m: m["state"][0].update(root="00" * 32), BundleMismatch, "root of tensor weights"),
        (lambda m: m["state"][0].update(blob="00" * 32), BundleUnavailable, "file"),
        (
            lambda m: m["state"][0].update(blob=m["state"][1]["blob"]),
            BundleMismatch,
            "length of tensor weights",
        ),
        (lambda m: m["state"][1].update(name="weights"), BundleMalformed, "each once"),
        (lambda m: m["constants"][0].update(name="data"), BundleMalformed, "each once"),
        (lambda m: m["state"].reverse(), BundleMismatch, "type of"),
        (lambda m: m["state"].pop(), BundleMalformed, "inputs"),
        (lambda m: m["dataset"].clear(), BundleMalformed, "inputs"),
        (
            lambda m: m.update(dataset=[], constants=[]),
            BundleMalformed,
            "at least one dataset tensor or constant",
        ),
        (lambda m: m["programs"].clear(), BundleMalformed, "programs"),
        (lambda m: m["programs"].pop(0), BundleMalformed, "the body of program"),
        (lambda m: m["programs"].pop(), BundleMalformed, "inputs"),
        (lambda m: m["programs"].append(m["programs"][0]), BundleMalformed, "each once"),
        (lambda m: m["programs"].reverse(), BundleMismatch, "ids of the bundle's programs"),
        (lambda m: m["programs"][0].update(id="00" * 32), BundleMismatch, "ids of the bundle's programs"),
        (lambda m: m["programs"][0].update(bytes=5), WrongFile, "at most 5 bytes"),
        (lambda m: m["programs"][0].update(bytes=10**6), BundleMismatch, "length of program"),
        (lambda m: m["programs"][0].update(bytes=2**29), BundleTooLarge, "encoded programs"),
        (lambda m: m["programs"][0]["hint"].update(name="os.system('x')"), BundleMalformed, "hint"),
        (lambda m: m["programs"][0]["hint"]["attributes"].update(x="text"), BundleMalformed, "attributes"),
        (lambda m: m["programs"][0]["hint"]["attributes"].update(x=2**70), BundleMalformed, "attributes"),
    ],
)
def test_a_changed_manifest_is_refused(
    folder: Path, change: Callable[[Manifest], None], error: type[BundleError], message: str
) -> None:
    bundle_hash = rewrite(folder, change)
    with pytest.raises(error, match=message):
        fetched(folder, bundle_hash)


def test_a_manifest_of_another_hash_is_refused(folder: Path) -> None:
    with pytest.raises(WrongFile, match="bundle hash"):
        fetched(folder, bytes(32))


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"[]", b"null", b'{"format": NaN}', b"[" * 100_000])
def test_what_is_no_manifest_is_refused(folder: Path, text: bytes) -> None:
    (folder / "manifest.json").write_bytes(text)
    with pytest.raises(BundleMalformed):
        fetched(folder, sha256(text).digest())


def test_a_blob_of_other_bytes_is_refused(folder: Path, bundle_hash: bytes) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    blob = manifest["state"][0]["blob"]
    path = folder / "blobs" / blob[:2] / blob
    path.write_bytes(bytes(1200))
    with pytest.raises(WrongFile, match="SHA-256 of blob"):
        fetched(folder, bundle_hash)
    path.write_bytes(bytes(1201))
    with pytest.raises(WrongFile, match="at most 1200 bytes"):
        fetched(folder, bundle_hash)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda _: bytes(4) + bytes(4),  # no inputs, no outputs, no instructions
        lambda data: b"\xff" * len(data),
    ],
)
def test_bytes_that_are_no_program_are_refused(folder: Path, spoil: Callable[[bytes], bytes]) -> None:
    made = bundle()
    data = spoil(made.step.program.encode())

    def change(manifest: Manifest) -> None:
        manifest["programs"][-1].update(blob=put(folder, data), bytes=max(1, len(data)))

    with pytest.raises((BundleMalformed, BundleMismatch)):
        fetched(folder, rewrite(folder, change))


def test_a_program_that_check_refuses_is_refused_before_any_tensor_is_fetched(folder: Path) -> None:
    made = bundle()
    honest = made.step.program
    doubled = Program(honest.inputs, (*honest.outputs, ROW), honest.instructions, honest.callees)

    def change(manifest: Manifest) -> None:
        data = doubled.encode()
        manifest["programs"][-1].update(id=doubled.id.hex(), blob=put(folder, data), bytes=len(data))
        manifest["state"][0]["blob"] = "00" * 32  # fetching it would fail with another error

    with pytest.raises(BundleMalformed, match="pass `check`"):
        fetched(folder, rewrite(folder, change))


def test_a_step_beyond_the_operators_device_is_refused(folder: Path, bundle_hash: bytes) -> None:
    with pytest.raises(BundleTooLarge, match="operations of a step"):
        fetched(folder, bundle_hash, Limits(step_operations=100))
    with pytest.raises(BundleTooLarge, match="bytes alive in a step"):
        fetched(folder, bundle_hash, Limits(peak_bytes=100))
    with pytest.raises(BundleTooLarge, match="tensors"):
        fetched(folder, bundle_hash, Limits(total_bytes=100))
    with pytest.raises(WrongFile, match="manifest"):
        fetched(folder, bundle_hash, Limits(manifest_bytes=100))


@pytest.mark.parametrize("depth", [9, pytest.param(1_500, marks=pytest.mark.heavy)])
def test_a_chain_of_calls_too_deep_to_follow_is_refused(folder: Path, depth: int) -> None:
    """Each program calls the one before it, in a chain deeper than `check` allows. A chain of 1,500 is too
    deep for recursion.
    """
    chain = [half(ROW)]
    for _ in range(depth):
        b = Builder("deeper")
        b.output(b.call(chain[-1], b.input(ROW))[0])
        chain.append(Program(*_parts(b.build()), {chain[-1].id: chain[-1]}))
    store = BlobStore(folder / "blobs")

    def change(manifest: Manifest) -> None:
        manifest["programs"] = [
            {"id": p.id.hex(), "blob": store.put(p.encode()), "bytes": len(p.encode()), "hint": None}
            for p in chain
        ]

    with pytest.raises(BundleMalformed):
        fetched(folder, rewrite(folder, change))


def _parts(program: Program) -> tuple[Any, Any, Any]:
    return program.inputs, program.outputs, program.instructions
