"""`assay init` and `assay try`: the written files work unchanged, and nothing is overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.description import read
from assay.errors import NotMade
from assay.initialising import write_example
from assay.options import context_of
from assay.trying import attempt


def test_the_folder_has_a_task_that_names_its_model(tmp_path: Path) -> None:
    model, task = write_example(tmp_path / "my-model")
    assert sorted(file.name for file in (tmp_path / "my-model").iterdir()) == ["my-model.toml", "my_model.py"]
    text = task.read_text()
    assert "reads all data and all weights" in text.splitlines()[0]
    assert not {"NAME", "MODEL", "FILE"} & set(text.split()), "no placeholder is left"
    description = read(task)
    assert (description.task.name, description.source) == ("my-model", model)
    assert description.terms.fields() == {}, "all terms are left out"
    given = description.task.model_dump(exclude_unset=True)
    assert given.keys() == {"name", "source", "segments", "segment_steps"}
    assert [file.name for file in tmp_path.iterdir()] == ["my-model"], "nothing is left beside"


@pytest.mark.parametrize("name", ["NAME", "MODEL", "FILE", "class"])
def test_a_name_may_be_any_word(tmp_path: Path, name: str) -> None:
    model, task = write_example(tmp_path / name)
    description = read(task)
    assert (description.task.name, description.source) == (name, model)
    assert f"assay try {name}.toml" in task.read_text()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    for name in ("empty", "file", "broken"):
        with pytest.raises(NotMade, match="nothing was overwritten"):
            write_example(tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"
    assert not any((tmp_path / "empty").iterdir())
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["a b", "1st", "-x", "x.y", "x" * 64, "é"])
def test_a_name_that_no_task_may_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotMade, match="choose another name"):
        write_example(tmp_path / name)
    assert not any(tmp_path.iterdir())


def test_where_nothing_can_be_written_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotMade, match="choose another place"):
        write_example(tmp_path / "file" / "model")


def test_the_example_is_tried_beside_torch(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _, task = write_example(tmp_path / "spirals")
    attempt(context_of("try", tmp_path / "home", True), task, 3)
    output, said = capfd.readouterr()
    told = json.loads(output)["data"]
    assert [one["step"] for one in told["steps"]] == [1, 2, 3]
    for one in told["steps"]:
        assert one["losses"]["metric.loss"] == pytest.approx(one["torch"]["metric.loss"], rel=1e-3)
    assert told["seconds"]["exact"] > 0
    assert told["seconds"]["torch"] > 0
    assert told["bundle_bytes"] > told["state_bytes"] > 0
    assert told["operations"] == 400 * told["step_operations"]
    assert int(told["budget"]) > 0
    for words in ("apart from torch's float32", "operations a second", "derived for 10 segments: budget"):
        assert words in said
    assert said.splitlines()[-1].startswith("next: `assay price ")
    assert not (tmp_path / "home" / "bundles").exists(), "nothing is published by a try"
