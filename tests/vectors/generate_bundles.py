"""Write bundles.json: a small bundle, file by file, and what terms say of it; and bundles that are refused.

README.md has the format. Deterministic. Run as `python -m tests.vectors.generate_bundles`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from protocol.commitments import BlobStore, tensor_root
from protocol.commitments.tensors import Tensor
from protocol.numerics.types import DType
from protocol.program import Builder, Program, StepProgram, TensorType
from protocol.program.library import Hint
from protocol.tasks.bundles import Bundle, BundleError, committed_terms, load_bundle, write_bundle

FILE = Path(__file__).with_name("bundles.json")
ROW = TensorType(DType.F32, (3,))
PAYLOAD = bytes.fromhex("0100c07f") * 3
"""Three NaN that are not canonical."""
Manifest = dict[str, Any]


def half(row: TensorType = ROW) -> Program:
    """A program that halves a row of the type `row`."""
    b = Builder("half")
    b.output(b.mul(b.input(row), b.f32(0x3F000000)))
    return b.build()


def twice() -> Program:
    """A program that adds a row to itself."""
    b = Builder("twice")
    x = b.input(ROW)
    b.output(b.add(x, x))
    return b.build()


def of_two() -> Program:
    """A step like `step` that calls `half`, then `twice`."""
    b = Builder("of_two")
    weights, count, data, rate = b.input(ROW), b.input(TensorType(DType.I32, ())), b.input(ROW), b.input(ROW)
    (halved,) = b.call(half(), weights)
    b.output(b.add(b.mul(halved, rate), b.call(twice(), data)[0]))
    b.output(b.add(count, b.i32(1)))
    return b.build()


def not_a_state() -> Program:
    """A program with the step's inputs. The type of its second output differs from that of the state's second
    tensor.
    """
    b = Builder("not_a_state")
    weights, _, data, _ = b.input(ROW), b.input(TensorType(DType.I32, ())), b.input(ROW), b.input(ROW)
    b.output(weights)
    b.output(data)
    return b.build()


def step(callee: Program) -> StepProgram:
    """A step with two outputs: weights / 2 * rate + data, and count + 1. `callee` is a program made by
    `half`; its input has the type of the weights, the data and the rate.
    """
    b, (row,) = Builder("step"), callee.inputs
    weights, count, data, rate = b.input(row), b.input(TensorType(DType.I32, ())), b.input(row), b.input(row)
    b.output(b.add(b.mul(b.call(callee, weights)[0], rate), data))
    b.output(b.add(count, b.i32(1)))
    return StepProgram(b.build(), ("weights", "count"), datasets=1, constants=1)


def bundle() -> Bundle:
    """The bundle of the file."""
    callee = half()
    row = np.array([1, 2, 3], np.float32)
    return Bundle(
        "small",
        step(callee),
        (Tensor.from_array("weights", row), Tensor("count", int(DType.I32), (), bytes(4))),
        (Tensor.from_array("data", row / 4),),
        (Tensor.from_array("rate", row / 8),),
        {callee.id: Hint("half", {"rounds": 3, "scale": 0.5, "exact": True})},
    )


def changes() -> Iterator[tuple[str, Callable[[Manifest], object]]]:
    """Changes to the manifest after which the bundle is refused, each with the reason."""
    yield "another format", lambda m: m.update(format="assay-proof")
    yield "another version", lambda m: m.update(version=2)
    yield "a field that is not known", lambda m: m.update(author="x")
    yield "a field is missing", lambda m: m.pop("name")
    yield "no hint, which may be null but not missing", lambda m: m["programs"][1].pop("hint")
    yield "a name with a blank", lambda m: m.update(name="a b")
    yield "a name of 65 characters", lambda m: m.update(name="a" * 65)
    yield "a name that begins with a dot", lambda m: m.update(name=".small")
    yield "a name with a letter that is not ASCII", lambda m: m.update(name="kleinß")
    yield "a tensor's name with a blank", lambda m: m["state"][0].update(name="the weights")
    yield "a hint's name that begins with -", lambda m: m["programs"][0]["hint"].update(name="-half")
    yield "NaN in a hint", lambda m: m["programs"][0]["hint"]["attributes"].update(scale=math.nan)
    yield "Infinity in a hint", lambda m: m["programs"][0]["hint"]["attributes"].update(scale=math.inf)
    yield "a hash in capital letters", lambda m: m["state"][0].update(root=m["state"][0]["root"].upper())
    yield "a hash with 0x", lambda m: m["state"][0].update(blob="0x" + m["state"][0]["blob"])
    yield (
        "an integer with a fraction",
        lambda m: m["programs"][0].update(bytes=float(m["programs"][0]["bytes"])),
    )
    yield "true for an integer", lambda m: m.update(version=True)
    yield "true for a dimension", lambda m: m["state"][0].update(shape=[True])
    yield "a dimension of 0", lambda m: m["state"][0].update(shape=[0])
    yield "rank 9", lambda m: m["state"][0].update(shape=[3] + [1] * 8)
    yield "no such type", lambda m: m["state"][0].update(dtype="f64")
    yield "text in a hint", lambda m: m["programs"][0]["hint"]["attributes"].update(rounds="3")
    yield (
        "an integer of 65 bits in a hint",
        lambda m: m["programs"][0]["hint"]["attributes"].update(a=1 << 63),
    )
    yield "no state", lambda m: m.update(state=[])
    yield "neither dataset nor constants", lambda m: m.update(dataset=[], constants=[])
    yield "a name of the state twice", lambda m: m["state"][1].update(name="weights")
    yield "a name of dataset and constants twice", lambda m: m["constants"][0].update(name="data")
    yield "a program twice", lambda m: m["programs"].insert(0, m["programs"][0])
    yield "the callee behind its caller", lambda m: m["programs"].reverse()
    yield "a callee is missing", lambda m: m["programs"].pop(0)
    yield "another id", lambda m: m["programs"][1].update(id="00" * 32)
    yield (
        "another length of a program",
        lambda m: m["programs"][1].update(bytes=m["programs"][1]["bytes"] + 1),
    )
    yield "another root", lambda m: m["state"][0].update(root=m["dataset"][0]["root"])
    yield "another blob", lambda m: m["state"][0].update(blob=m["dataset"][0]["blob"])
    yield "a blob that there is not", lambda m: m["state"][0].update(blob="00" * 32)
    yield "another shape than the program's input", lambda m: m["state"][0].update(shape=[1, 3])
    yield "a constant that the program does not take", lambda m: m.update(constants=[])
    yield "an arithmetic that nobody computes", lambda m: m.update(arithmetic=65_535)
    yield (
        "NaN that are not canonical",
        lambda m: m["state"][0].update(root=tensor_root(PAYLOAD).hex(), blob=sha256(PAYLOAD).hexdigest()),
    )


def with_programs(manifest: Manifest, *programs: Program) -> Manifest:
    """The manifest with other programs. The last of them is the step."""
    return {**manifest, "programs": [_entry(program) for program in programs]}


def _entry(program: Program) -> dict[str, Any]:
    data = program.encode()
    return {"id": program.id.hex(), "blob": sha256(data).hexdigest(), "bytes": len(data), "hint": None}


def texts(manifest: Manifest) -> Iterator[tuple[str, bytes]]:
    """Manifests that are refused, each with the reason."""
    for why, change in changes():
        changed = json.loads(json.dumps(manifest))
        change(changed)
        yield why, _compact(changed)
    plain = _compact(manifest)
    yield "a field twice", plain.replace(b'"arithmetic":1', b'"arithmetic":1,"arithmetic":1')
    yield "an attribute twice", plain.replace(b'"rounds":3', b'"rounds":3,"rounds":3')
    yield "a number beyond float64", plain.replace(b'"scale":0.5', b'"scale":1e999')
    for why, programs in (
        ("two callees in another order than the calls", (twice(), half(), of_two())),
        ("a program that nobody calls", (half(), twice(), step(half()).program)),
        ("outputs that differ from the state", (not_a_state(),)),
    ):
        yield why, _compact(with_programs(manifest, *programs))


def _compact(manifest: Manifest) -> bytes:
    return json.dumps(manifest, separators=(",", ":")).encode()


def refused(folder: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """A row for each manifest of `texts`. Each is loaded with the blobs of the folder, and must be refused;
    otherwise AssertionError is raised.
    """
    rows = []
    for why, data in texts(manifest):
        (folder / "manifest.json").write_bytes(data)
        try:
            load_bundle(folder)
        except BundleError:
            rows.append({"why": why, "manifest": data})
            continue
        raise AssertionError(f"{why} is accepted")
    return rows


def accepted(folder: Path, data: bytes) -> dict[str, Any]:
    """The row of a manifest that is accepted: its bytes, its hash, and what the terms say of its bundle."""
    (folder / "manifest.json").write_bytes(data)
    return {
        "manifest": data,
        "bundle_hash": sha256(data).digest(),
        **committed_terms(load_bundle(folder)),
    }


def build(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of all sections. In `bundles`, row 1 is row 0 with blanks added. Row 2 is row 0 without format
    and version. Row 3 has a step that calls two programs.
    """
    write_bundle(bundle(), folder)
    store = BlobStore(folder / "blobs")
    for data in (PAYLOAD, *(program.encode() for program in (twice(), of_two(), not_a_state()))):
        store.put(data)
    compact = (folder / "manifest.json").read_bytes()
    manifest = json.loads(compact)
    unnamed = {name: value for name, value in manifest.items() if name not in ("format", "version")}
    of_two_programs = _compact(with_programs(manifest, half(), twice(), of_two()))
    accepted_texts = (compact, json.dumps(manifest, indent=1).encode(), _compact(unnamed), of_two_programs)
    files = sorted(path for path in (folder / "blobs").rglob("*") if path.is_file())
    return {
        "bundles": [accepted(folder, text) for text in accepted_texts],
        "blobs": [{"path": path.relative_to(folder).as_posix(), "data": path.read_bytes()} for path in files],
        "refused_bundles": refused(folder, manifest),
    }


def document() -> dict[str, dict[str, list[Any]]]:
    """The whole file as JSON values."""
    with TemporaryDirectory() as folder:
        sections = build(Path(folder))
    return {
        section: {name: [_json(row[name]) for row in rows] for name in rows[0]}
        for section, rows in sections.items()
    }


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(document(), indent=1) + "\n")


def _json(entry: Any) -> Any:
    return "0x" + entry.hex() if isinstance(entry, bytes) else entry


if __name__ == "__main__":
    main()
