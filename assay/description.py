"""Reads the TOML file that describes a task. Every number is bounded, and unknown fields are refused.

Amounts are in tokens, which may have decimals; `TermsTable.fields` gives them in token units. Times are in
seconds.
"""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from assay.errors import DescriptionError
from protocol.chain.parameters import TOKEN
from protocol.tasks.task import (
    AMOUNTS,
    MAX_JURORS,
    MAX_SEAT_SEGMENTS,
    MAX_SEATS,
    MAX_SEGMENT_STEPS,
    MAX_SEGMENTS,
    RATE_OF_ALL,
)

MAX_BYTES = 1 << 20

_Tokens = Annotated[Decimal, Field(ge=0, le=10**15, decimal_places=18)]
_Seconds = Annotated[int, Field(ge=1, lt=2**32)]
_Function = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
_AUDIT = ("verifiers", "segments_per_verifier")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunTable(_Table):
    """The name of a training, its length, and the key of its random numbers."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
    segments: Annotated[int, Field(ge=1, le=MAX_SEGMENTS)]
    segment_steps: Annotated[int, Field(ge=1, le=MAX_SEGMENT_STEPS)]
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0


class TaskTable(RunTable):
    """What is trained. `source` is a Python file, relative to the task file's folder. `build` names a
    function in this file that takes the number of steps. `micro_batches` is the number of parts of a batch,
    which several processes may share; if it is given, the function takes it too. `start` is the folder of a
    result, relative to the task file's folder; if it is given, the function also takes `resume`, the state to
    continue from.
    """

    source: str
    build: _Function = "build"
    micro_batches: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    start: str | None = None


class ResultTable(_Table):
    """What the submitter does with the final state: `evaluate` names a function in the task's `source`."""

    evaluate: _Function | None = None


class TermsTable(_Table):
    """The market terms. Each may be left out and is then derived (`assay.deriving`) or, for `thinning`,
    recommended (`assay.submitting`). A `stake` requires `verifiers` and `segments_per_verifier`.
    """

    budget: Annotated[Decimal, Field(gt=0, le=10**15, decimal_places=18)] | None = None
    stake: _Tokens | None = None
    restitution: _Tokens | None = None
    reward: _Tokens | None = None
    audit_fee: _Tokens | None = None
    game_cost: _Tokens | None = None
    delay_penalty: _Tokens | None = None
    bidding_period: _Seconds | None = None
    training_period: _Seconds | None = None
    challenge_period: _Seconds | None = None
    attest_period: _Seconds | None = None
    extension: _Seconds | None = None
    clock: _Seconds | None = None
    replay_allowance: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    verifiers: Annotated[int, Field(ge=1, le=MAX_SEATS)] | None = None
    segments_per_verifier: Annotated[int, Field(ge=1, le=MAX_SEAT_SEGMENTS)] | None = None
    thinning: Literal[1, 2, 4, 8, 16, 32, 64] | None = None
    move_time: _Seconds | None = None
    look_chance: Annotated[int, Field(ge=0, le=RATE_OF_ALL)] | None = None
    jurors: Annotated[int, Field(ge=0, le=MAX_JURORS)] | None = None
    seat_lock: _Tokens | None = None
    bond: _Tokens | None = None
    retrain_reward: _Tokens | None = None

    @model_validator(mode="after")
    def _belong_together(self) -> TermsTable:
        missing = [name for name in _AUDIT if getattr(self, name) is None]
        if self.stake is not None and missing:
            raise ValueError(
                f"expected {', '.join(_AUDIT)} beside a stake, for it is right for one audit only, "
                f"and {', '.join(missing)} not there"
            )
        return self

    def fields(self) -> dict[str, int]:
        """The given fields of `Terms`, with amounts in token units."""
        given = self.model_dump(exclude_none=True)
        return {name: int(value * TOKEN) if name in AMOUNTS else value for name, value in given.items()}


class Plan(_Table):
    """A training to be posted, described in a file or in Python (`assay.training`)."""

    task: RunTable
    terms: TermsTable = TermsTable()

    @property
    def steps(self) -> int:
        """Number of steps of the whole task."""
        return self.task.segments * self.task.segment_steps


class Description(Plan):
    """The content of a task file; `folder` is the file's folder."""

    task: TaskTable
    result: ResultTable = ResultTable()
    folder: Path

    @property
    def source(self) -> Path:
        """The path of the Python file that builds the task."""
        return self.folder / self.task.source

    @property
    def start(self) -> Path | None:
        """The folder of the result from which training continues."""
        return None if self.task.start is None else self.folder / self.task.start


def read(file: Path) -> Description:
    """Read a task file. Raises DescriptionError, which names the field, what was expected and what was
    found.
    """
    table = _table(file)
    if "folder" in table:  # the one field of a description that no file gives
        raise DescriptionError(
            f"{file}, folder", expected="a field of task files", got="another", remedy="remove it"
        )
    try:
        description = Description.model_validate({**table, "folder": file.absolute().parent})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise DescriptionError(
            f"{file}, {where}: {first['msg']}, got {str(first.get('input'))[:80]!r}; correct this field"
        ) from error
    try:
        why = None if description.source.is_file() else "none"
    except OSError as error:
        why = error.strerror or type(error).__name__
    if why is not None:
        raise DescriptionError(
            f"{file}, task.source",
            expected=f"a Python file at {str(description.source)[:200]}",
            got=why,
            remedy="correct this field",
        )
    return description


def _table(file: Path) -> dict[str, Any]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise DescriptionError(
            f"task file {file}",
            expected="a readable file",
            got=type(error).__name__,
            remedy="name a .toml file",
        ) from error
    if len(data) > MAX_BYTES:
        raise DescriptionError(
            f"task file {file}",
            expected=f"at most {MAX_BYTES} bytes",
            got=len(data),
            remedy="this is not a task file",
        )
    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DescriptionError(f"task file {file}: expected TOML; {error}; correct it there") from error
