"""Documents in JSON name their version as an integer. Values that only equal it in Python are refused."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from assay.proofs import Proof
from protocol.chain import deployment
from protocol.commitments import checkpoints
from protocol.exchange import announcements, jobs, members
from protocol.execution import measured
from protocol.node.format_versions import is_version
from protocol.tasks.bundles.manifest import Manifest

MODELS: list[tuple[type[BaseModel], int]] = [
    (Proof, 1),
    (deployment.Deployment, deployment.VERSION),
    (checkpoints._Manifest, 1),
    (announcements._Form, 2),
    (jobs.Numbers, 1),
    (members._Members, 1),
    (measured._File, 1),
    (Manifest, 1),
]


def accepts(model: type[BaseModel], version: str) -> bool:
    """Whether the model accepts this JSON value as its version, whatever it says of other fields."""
    try:
        model.model_validate_json(f'{{"version": {version}}}')
    except ValidationError as error:
        return all(fault["loc"] != ("version",) for fault in error.errors())
    return True


@pytest.mark.parametrize(("model", "version"), MODELS, ids=lambda given: getattr(given, "__module__", None))
def test_a_version_is_an_integer(model: type[BaseModel], version: int) -> None:
    assert accepts(model, str(version))
    for other in ("true", f"{version}.0", f'"{version}"', "null", str(version + 1), str(version - 1)):
        assert not accepts(model, other), other


def test_a_value_that_equals_a_version_is_none() -> None:
    assert is_version(1, 1)
    assert not any(is_version(other, 1) for other in (True, 1.0, "1", None, 2))
