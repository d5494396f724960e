"""Results that are held: on disk, and as HTTP gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from verifier.results import Results, application

TENSORS = [b"first", b"", bytes(range(256))]


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made = Results(tmp_path / "results")
    made.hold(7, 3, TENSORS)
    return made


def test_a_held_result_is_served_tensor_by_tensor_until_it_is_dropped(results: Results) -> None:
    with TestClient(application(results)) as client:
        where = [f"/tasks/7/checkpoints/3/tensors/{number}" for number in range(4)]
        answers = [client.get(path) for path in where]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 404]
        assert [answer.content for answer in answers[:3]] == TENSORS
        results.drop(7)
        results.drop(7)
        assert {client.get(path).status_code for path in where} == {404}


@pytest.mark.parametrize(
    "path",
    [
        "/tasks/8/checkpoints/3/tensors/0",
        "/tasks/7/checkpoints/2/tensors/0",
        "/tasks/7/checkpoints/3/tensors/-1",
        "/tasks/7/checkpoints/3/tensors/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/tasks/../7/checkpoints/3/tensors/0/..",
        "/tasks/7/checkpoints/3/tensors/99999999999999999999999999",
    ],
)
def test_nothing_else_is_served(results: Results, path: str) -> None:
    with TestClient(application(results)) as client:
        assert client.get(path).status_code in (404, 422)
        assert client.post("/tasks/7/checkpoints/3/tensors/0").status_code == 405
