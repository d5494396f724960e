"""docs/guide/start.md: its commands exist, and the whole guide works as written in a clean home folder."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from assay.description import TermsTable
from protocol.chain.devnet import anvil_program
from tests.e2e.alone import clean_environment, run_alone
from tests.e2e.guide import READY, Block, blocks
from tests.toolchain.commands import parsed
from tests.toolchain.project import REPOSITORY

GUIDE = REPOSITORY / "docs" / "guide" / "start.md"
BLOCKS = [*blocks(GUIDE.read_text())]
COMMANDS = [line for block in BLOCKS if block.language == "sh" for line in block.commands]


def test_the_first_words_are_what_everybody_reads() -> None:
    paragraphs = GUIDE.read_text().split("\n\n")
    assert paragraphs[0].startswith("# ")
    assert paragraphs[1].startswith("Every party reads the data and the weights of a task")


def test_blocks_are_found_with_what_stands_before_them() -> None:
    text = (
        "Put this at the end of `a/b.toml`:\n\n```toml\nx = 1\n```\n\n```sh\n# no command\nassay try x\n```\n"
    )
    assert [*blocks(text)] == [
        Block("Put this at the end of `a/b.toml`:", "toml", "x = 1\n"),
        Block("", "sh", "# no command\nassay try x\n"),
    ]
    assert [*blocks(text)][1].commands == ["assay try x"]


def test_only_these_blocks_are_not_run() -> None:
    assert [block.text.splitlines()[0] for block in BLOCKS if block.language == "console"] == [
        "pip install assay-*.whl scikit-learn"
    ], "tests/e2e/test_wheel.py installs it"
    languages = [block.language for block in BLOCKS]
    assert {name: languages.count(name) for name in languages} == {
        "console": 1,
        "sh": 5,
        "toml": 1,
        "python": 3,
        "text": 1,
    }


@pytest.mark.parametrize("line", [line for line in COMMANDS if not line.startswith("sed ")])
def test_its_commands_are_commands(line: str) -> None:
    assert parsed(line.removesuffix("&").split())


def test_what_goes_on_running_says_when_it_is_ready() -> None:
    lines = [line for line in COMMANDS if line.endswith("&")]
    assert [next(start for start in READY if line.startswith(start)) for line in lines] == [*READY]


def test_both_ways_give_the_same_terms() -> None:
    (table,) = (block.text for block in BLOCKS if block.language == "toml")
    in_file = tomllib.loads(table)["terms"]
    assert TermsTable.model_validate(in_file).fields() == in_file
    program = next(block.text for block in BLOCKS if block.language == "python")
    in_python = re.search(r"TERMS = \{(.*?)\}", program, re.DOTALL)
    assert in_python is not None
    assert dict(re.findall(r'"(\w+)": (\d+)', in_python[1])) == {k: str(v) for k, v in in_file.items()}


@pytest.mark.heavy
@pytest.mark.chain
@pytest.mark.timeout(1_500)
def test_all_of_it_works_as_it_stands(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    environment = clean_environment(home, anvil_program())
    done = run_alone("tests.e2e.guide", str(GUIDE), str(folder), environment=environment, timeout=1_400)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    said = done.stdout
    assert said.count("is over, settled: the result is final") == 3
    assert said.count("nothing was sent") == 2, "two dry runs"
    assert said.count("equal: all that was checked is as committed") == 2
    accuracies = [float(found) for found in re.findall(r"accuracy': tensor\(([\d.]+)\)", said)]
    assert len(accuracies) == 2
    assert min(accuracies) > 0.9
    assert {path.name for path in (folder / "second").iterdir()} >= {"state.safetensors", "proof.json"}
    assert said.endswith("the guide is done\n")
