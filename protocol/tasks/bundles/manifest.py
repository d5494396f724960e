"""The manifest of a bundle, version 1: strict JSON in which every name and number has limits. The docstring
of the package describes bundles.

    {"format": "assay-bundle", "version": 1, "name": "digits", "arithmetic": 1,
     "programs": [{"id": …, "blob": …, "bytes": …, "hint": {"name": "linear", "attributes": {}} | null}, …],
     "state":     [{"name": …, "dtype": "f32", "shape": [64, 512], "root": …, "blob": …}, …],
     "dataset":   […], "constants": […]}

Programs are listed with callees before their callers; the last one is the step. Hashes are 64 hexadecimal
digits.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from protocol.commitments.errors import CheckpointError
from protocol.commitments.tensors import CODES, tensor_bytes
from protocol.node.format_versions import only
from protocol.tasks.bundles.errors import BundleMalformed

VERSION: Final = 1
MAX_PROGRAMS: Final = 4_096
MAX_TENSORS: Final = 65_535
_I64: Final = 2**63

# Only hexadecimal digits, module paths and function names: nothing that a file system or a terminal interprets.
_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_TensorName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_./:\[\]-]{1,200}$")]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]


def _in_64_bits(value: object) -> object:
    # Without this check, a huge integer would be accepted as a float.
    if isinstance(value, int) and not -_I64 <= value < _I64:
        raise ValueError("an integer of more than 64 bits")
    return value


_Attribute = Annotated[
    bool | int | Annotated[float, Field(allow_inf_nan=False)], BeforeValidator(_in_64_bits)
]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class HintEntry(_Model):
    """The library function that a program claims to be. This is only a hint, because kernels are found by
    program id.
    """

    name: _Name
    attributes: Annotated[dict[_Name, _Attribute], Field(max_length=32)]


class ProgramEntry(_Model):
    """The manifest's entry for one encoded program."""

    id: _Hash
    blob: _Hash
    bytes: Annotated[int, Field(ge=1, le=1 << 30)]
    hint: HintEntry | None


class TensorEntry(_Model):
    """The manifest's entry for one tensor. The tensor's canonical bytes are the blob."""

    name: _TensorName
    dtype: Literal["f32", "u8", "i32", "u32", "i64", "bool"]
    shape: Annotated[list[Annotated[int, Field(ge=1, lt=1 << 31)]], Field(max_length=8)]
    root: _Hash
    blob: _Hash

    @property
    def nbytes(self) -> int:
        """Length of the canonical bytes. Raises BundleMalformed if it exceeds encoding.md's limit."""
        try:
            return tensor_bytes(CODES[self.dtype], self.shape)
        except CheckpointError as error:
            raise BundleMalformed(
                f"tensor {self.name}", expected=error.expected, got=error.got, remedy="refuse this bundle"
            ) from error


class Manifest(_Model):
    """The manifest: everything that a bundle contains."""

    format: Literal["assay-bundle"] = "assay-bundle"
    version: Annotated[int, only(VERSION)] = VERSION
    name: _Name
    arithmetic: Annotated[int, Field(ge=1, le=65_535)]
    programs: Annotated[list[ProgramEntry], Field(min_length=1, max_length=MAX_PROGRAMS)]
    state: Annotated[list[TensorEntry], Field(min_length=1, max_length=MAX_TENSORS)]
    dataset: Annotated[list[TensorEntry], Field(max_length=MAX_TENSORS)]
    constants: Annotated[list[TensorEntry], Field(max_length=MAX_TENSORS)]

    @property
    def tensors(self) -> list[TensorEntry]:
        """All tensors, in the order of the step program's inputs."""
        return [*self.state, *self.dataset, *self.constants]


def _each_once(pairs: list[tuple[str, object]]) -> None:
    """Raise BundleMalformed if a JSON object has a field twice, because readers differ in which value they take."""
    repeated = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if repeated:
        raise BundleMalformed(
            "bundle manifest",
            expected="each field of an object once",
            got=f"{repeated[0][:100]!a} again",
            remedy="refuse this bundle",
        )


def parse_manifest(data: bytes) -> Manifest:
    """Parse a manifest. Raises BundleMalformed at the first violation of the format. A manifest must have at
    least one dataset tensor or constant, because the terms of a task must have one too.
    """
    try:
        manifest = Manifest.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise BundleMalformed(
            "bundle manifest",
            expected=f"an assay-bundle of version {VERSION}",
            got=f"{where[:100]!a}: {first['msg'][:200]!a}",  # names in it come from a stranger
            remedy="refuse this bundle, or use the release that its version asks for",
        ) from error
    json.loads(data, object_pairs_hook=_each_once)
    for what, names in (
        ("programs", [entry.id for entry in manifest.programs]),
        ("state tensors", [entry.name for entry in manifest.state]),
        ("dataset tensors and constants", [e.name for e in (*manifest.dataset, *manifest.constants)]),
    ):
        if len(set(names)) != len(names):
            raise BundleMalformed(
                f"bundle manifest, {what}",
                expected="each once",
                got="repetitions",
                remedy="refuse this bundle",
            )
    if (
        not manifest.dataset and not manifest.constants
    ):  # the root of the terms' constants is over one at least
        raise BundleMalformed(
            "bundle manifest",
            expected="at least one dataset tensor or constant",
            got="neither",
            remedy="refuse this bundle: no terms can describe it",
        )
    return manifest
