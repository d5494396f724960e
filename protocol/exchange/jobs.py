"""A job's folder: the bundle of the captured step, and the numbers that split it into lanes.

Every lane splits the step itself, so the bundle and `job.json` alone determine the programs that it runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from protocol.capture.result import CapturedStep
from protocol.commitments import BlobStore
from protocol.commitments.atomic import write_atomically
from protocol.exchange.errors import JobError
from protocol.lanes import Lanes, lanes, seeds
from protocol.lanes.splitting import LARGEST_CUT, LEAST_CUT, MOST_EXPONENT
from protocol.node.format_versions import only
from protocol.program.execute import Interpreter
from protocol.program.library import Hint
from protocol.tasks.bundles.bundle import Bundle
from protocol.tasks.bundles.fetch import fetch_bundle
from protocol.tasks.bundles.limits import Limits
from protocol.tasks.bundles.write import write_bundle

FILE: Final = "job.json"
BUNDLE: Final = "bundle"
MOST_BYTES: Final = 1 << 20
"""Size limit of `job.json`, which consists mostly of parameter names."""

MOST_ROUNDS: Final = 1 << 20
"""Maximum number of rounds of a job. At this number, a membership table whose rounds are all the same takes 8 MiB."""

_Name = Annotated[str, Field(min_length=1, max_length=200)]


class Numbers(BaseModel):
    """The contents of `job.json`: how a captured step is split. `protocol.lanes` documents each number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["assay-lanes"] = "assay-lanes"
    version: Annotated[int, only(1)] = 1
    bundle: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    width: Annotated[int, Field(ge=1)]
    density: Annotated[str, Field(pattern=r"^1(/(8|16|32|64))?$")]
    inner_steps: Annotated[int, Field(ge=1, lt=1 << 31)]
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS)]
    seed: Annotated[int, Field(ge=0, lt=1 << 64)]
    rate: FiniteFloat = 1.0
    decay: FiniteFloat = 1.0
    most_exponent: Annotated[int, Field(ge=LEAST_CUT, le=LARGEST_CUT)] = MOST_EXPONENT
    parameters: Annotated[tuple[_Name, ...], Field(min_length=1)]


@dataclass(frozen=True)
class LaneJob:
    """A job as its lanes run it. Every announcement contains `id`, the SHA-256 of `job.json`."""

    id: bytes
    numbers: Numbers
    lanes: Lanes
    hints: Mapping[bytes, Hint]
    device: torch.device

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return self.numbers.rounds

    @property
    def seeds(self) -> list[int]:
        """The seed of each lane."""
        return seeds(self.numbers.seed, self.lanes.width)

    def interpreter(self) -> Interpreter:
        """An interpreter of a lane's three programs (`protocol.lanes`) on the job's device."""
        return self.lanes.interpreter(self.hints, self.device)


def write_job(
    captured: CapturedStep,
    folder: Path,
    *,
    name: str,
    width: int,
    density: Fraction,
    inner_steps: int,
    rounds: int,
    seed: int,
    rate: float = 1.0,
    decay: float = 1.0,
    most_exponent: int = MOST_EXPONENT,
) -> bytes:
    """Write a job's folder and return the job's id. Raises `LanesError`, `BundleError`, `JobError`.

    If it raises `LanesError` or `JobError`, nothing was written.
    """
    split = lanes(
        captured,
        width=width,
        density=density,
        inner_steps=inner_steps,
        rate=rate,
        decay=decay,
        most_exponent=most_exponent,
    )
    if (folder / FILE).exists():
        raise JobError(
            str(folder), expected="a folder without a job", got=FILE, remedy="name another, or delete it"
        )
    try:
        numbers = Numbers(
            bundle="0" * 64,
            width=width,
            density=str(density),
            inner_steps=inner_steps,
            rounds=rounds,
            seed=seed,
            rate=rate,
            decay=decay,
            most_exponent=most_exponent,
            parameters=split.parameters,
        )
    except ValidationError as error:
        raise JobError(str(folder / FILE), expected="numbers of a job", got=first_of(error)) from error
    bundle = write_bundle(Bundle.of(name, captured, captured.initial_state(seed)), folder / BUNDLE)
    numbers = numbers.model_copy(update={"bundle": bundle.hex()})
    data = json.dumps(numbers.model_dump(), indent=1, allow_nan=False).encode() + b"\n"
    write_atomically(folder / FILE, data)
    return sha256(data).digest()


def load_job(folder: Path, device: torch.device | None = None) -> LaneJob:
    """Load and check the job in a folder; its fixed tensors are placed on `device`.

    Raises `JobError`, `BundleError`, `LanesError`.
    """
    device = device or torch.device("cpu")
    data = read_file(folder / FILE, MOST_BYTES, "a job's numbers, as `assay split` writes them")
    try:
        numbers = Numbers.model_validate_json(data)
    except ValidationError as error:
        raise JobError(str(folder / FILE), expected="the form of a job", got=first_of(error)) from error
    limits = Limits(allowed=(str(folder.absolute()),))
    where = str((folder / BUNDLE).absolute())
    bundle = fetch_bundle(where, bytes.fromhex(numbers.bundle), BlobStore(folder / BUNDLE / "blobs"), limits)
    fixed = [x.to(device) for x in bundle.fixed()]
    names = [tensor.name for tensor in (*bundle.dataset, *bundle.constants)]
    tensors = dict(zip(names, fixed, strict=True))
    dataset = {name: tensors[name] for name in names[: len(bundle.dataset)]}
    constants = {name: tensors[name] for name in names[len(bundle.dataset) :]}
    captured = CapturedStep(bundle.step, dataset, constants, bundle.initial_state(), {})
    split = lanes(
        captured,
        width=numbers.width,
        density=Fraction(numbers.density),
        inner_steps=numbers.inner_steps,
        rate=numbers.rate,
        decay=numbers.decay,
        most_exponent=numbers.most_exponent,
        parameters=numbers.parameters,
    )
    return LaneJob(sha256(data).digest(), numbers, split, bundle.hints, device)


def read_file(path: Path, most: int, what: str) -> bytes:
    """The bytes of a small file. Raises `JobError` if it cannot be read or has more than `most` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        got = error.strerror or type(error).__name__
        raise JobError(str(path), expected=what, got=got, remedy="see that the file is there") from error
    if len(data) > most:
        raise JobError(str(path), expected=f"at most {most} bytes", got="more")
    return data


def first_of(error: ValidationError) -> str:
    """A short description of the first validation error."""
    found = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, found["loc"]))
    return f"{where}: {found['msg']}" if where else str(found["msg"])
