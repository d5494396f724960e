"""Tests the sample of mutants, the runner (in a small checkout), and the page of mutation scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutation import page, running
from tests.mutation.mutants import ROOT, Mutant, identity, sample
from tests.mutation.running import SAMPLE, Fate, Outcome, Outcomes, Player
from tests.mutation.scope import LANGUAGES, Language

SOURCE = '"""Of one function."""\n\n\ndef least(a: int, b: int) -> int:\n    return a if a < b else b\n'
LESS = SOURCE.index("<")
MUTANT = Mutant("least.py", "Lt_Gt", LESS, LESS + 1, ">")
EQUAL = Mutant("least.py", "Lt_LtE", LESS, LESS + 1, "<=")
TEST = "from least import least\n\n\ndef test() -> None:\n    assert (least(1, 2), least(2, 1)) == (1, 1)\n"
SMALL = Language("python", ".py", "", {"least.py": [("test_least.py",)]})
OUTCOME = Outcome("a" * 16, "python", "least.py", 5, "Lt_Gt", "a < b → a > b", Fate.KILLED, 1, "1" * 40)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of one module and its test."""
    (tmp_path / "least.py").write_text(SOURCE)
    (tmp_path / "test_least.py").write_text(TEST)
    return tmp_path


def test_the_sample_has_every_mutant_once_in_the_same_order() -> None:
    identities = [f"{number:016x}" for number in range(50)]
    drawn = sample(identities)
    assert drawn == sample(reversed(identities)) != identities
    assert sorted(drawn) == identities
    assert sample(identities[1:]) == [one for one in drawn if one != identities[0]]


def test_comments_docstrings_and_layout_do_not_change_an_identity(tree: Path) -> None:
    before = identity(MUTANT, tree)
    (tree / "least.py").write_text("# A comment.\n" + SOURCE.replace("Of one", "Has one"))
    moved = replace(MUTANT, start=MUTANT.start + 13, end=MUTANT.end + 13)
    moved = replace(moved, start=moved.start + 1, end=moved.end + 1)
    assert identity(moved, tree) == before
    assert identity(replace(moved, text=">="), tree) != before


def test_comments_of_solidity_do_not_change_an_identity(tmp_path: Path) -> None:
    file = tmp_path / "A.sol"
    file.write_text('string a = "// kept"; // gone\nuint b = 1;')
    mutant = Mutant("A.sol", "x", file.read_text().index("1"), file.read_text().index("1") + 1, "2")
    before = identity(mutant, tmp_path)
    file.write_text('string a = "// kept"; /* gone too */ uint b = 1;')
    place = file.read_text().index("1")
    assert identity(replace(mutant, start=place, end=place + 1), tmp_path) == before
    file.write_text('string a = "// lost"; /* gone too */ uint b = 1;')
    assert identity(replace(mutant, start=place, end=place + 1), tmp_path) != before


def test_a_mutant_that_a_test_notices_is_killed_and_one_that_none_does_survives(tree: Path) -> None:
    player = Player(SMALL, tree, "b")
    killed = player.play(MUTANT, "a", quick=True)
    assert killed is not None
    assert (killed.fate, killed.by, killed.line) == (Fate.KILLED, 1, 5)
    assert killed.change == "return a if a < b else b → return a if a > b else b"
    assert player.play(EQUAL, "a", quick=True) is None
    argued = Player(SMALL, tree, "b", argued={"a"})
    for survivor in (player.play(EQUAL, "a", quick=False), argued.play(EQUAL, "a", quick=True)):
        assert survivor is not None
        assert survivor.fate is Fate.SURVIVED
    assert (tree / "least.py").read_text() == SOURCE


def test_a_mutant_that_never_ends_is_killed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LEAST_LIMIT", 1)
    forever = replace(MUTANT, text="< sum(iter(int, 1)) <")
    killed = Player(SMALL, tree, "b").play(forever, "a", quick=True)
    assert killed is not None
    assert killed.fate is Fate.KILLED


def test_tests_that_fail_without_a_mutant_are_said(tree: Path) -> None:
    (tree / "test_least.py").write_text(TEST.replace("(1, 1)", "(1, 2)"))
    with pytest.raises(RuntimeError, match=r"expected test_least.py to pass in .*, which has no mutant"):
        Player(SMALL, tree, "b").play(MUTANT, "a", quick=True)
    assert (tree / "least.py").read_text() == SOURCE


def test_a_survivor_that_compiles_to_the_same_code_is_not_counted(tmp_path: Path) -> None:
    source = "contract A { function f(uint256 x) external pure returns (bool) { return x != 0; } }"
    settings = {
        "src": "contracts/src",
        "solc": str(ROOT / "scripts" / "solc"),
        "offline": True,
        "optimizer": True,
        "via_ir": True,
        "bytecode_hash": "none",
        "cbor_metadata": False,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (tmp_path / "foundry.toml").write_text("\n".join(["[profile.default]", *lines]))
    file = tmp_path / "contracts" / "src" / "A.sol"
    file.parent.mkdir(parents=True)
    file.write_text(source)
    place = source.index("x != 0")
    same = Mutant("contracts/src/A.sol", "ROR", place, place + len("x != 0"), "x > 0")
    untested = Language("solidity", ".sol", "", {"contracts/src/A.sol": [("--match-path", "none")]})
    player = Player(untested, tmp_path, "b")
    outcome = player.play(same, "a", quick=True)
    assert outcome is not None
    assert outcome.fate is Fate.SAME
    assert player.play(replace(same, text="x > 1"), "b", quick=True) is None, "the other tests decide"
    assert file.read_text() == source


def test_outcomes_are_continued_and_survivors_tried_again_on_another_commit(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    survivor = replace(OUTCOME, id="b" * 16, fate=Fate.SURVIVED, by=0)
    kept = Outcomes(file, OUTCOME.commit)
    kept.add(OUTCOME)
    kept.add(survivor)
    again = Outcomes(file, OUTCOME.commit)
    assert [again.of(one.id) for one in (OUTCOME, survivor)] == [OUTCOME, survivor]
    recorded = Outcomes(tmp_path / "none.jsonl", OUTCOME.commit, [OUTCOME])
    assert recorded.of(OUTCOME.id) == OUTCOME, "the page's file counts as well"
    later = Outcomes(file, "2" * 40)
    assert [later.of(one.id) for one in (OUTCOME, survivor)] == [OUTCOME, None]
    assert Outcomes(file, "2" * 40, argued={survivor.id}).of(survivor.id) == survivor


def test_every_file_that_is_mutated_is_there_and_every_test_is() -> None:
    for language in LANGUAGES.values():
        for file in language.files(ROOT):
            assert (ROOT / file).is_file()
        for stages in language.folders.values():
            named = [part for stage in stages for part in stage if part.startswith("tests/")]
            assert all((ROOT / part).exists() for part in named)


def test_the_page_is_of_the_file_and_argues_every_survivor() -> None:
    outcomes = page.recorded()
    assert page.PAGE.read_text() == page.page(outcomes)
    assert page.unargued(outcomes) == []
    survivors = {one.id for one in outcomes if one.fate is Fate.SURVIVED}
    assert set(page.arguments()) == survivors


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_score_is_at_least_95_per_cent(language: str) -> None:
    own = [one for one in page.recorded() if one.language == language and one.fate.is_counted]
    assert 0 < len(own) <= SAMPLE
    assert page.score(own) >= 0.95
    killed = sum(one.fate is Fate.KILLED for one in own)
    assert len(own) < SAMPLE or killed >= 0.95 * SAMPLE, "of a whole sample, with those that compute the same"


def test_an_unargued_survivor_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    survivor = replace(OUTCOME, file="protocol/dispute/keys.py", fate=Fate.SURVIVED, by=0)
    outcomes: Sequence[Outcome] = [survivor, replace(survivor, fate=Fate.REFUSED)]
    monkeypatch.setattr(page, "arguments", dict)
    monkeypatch.setattr(page, "same", set)
    assert page.unargued(outcomes) == [survivor]
    text = page.page(outcomes)
    assert "**0.0%** of 1 mutants were killed, 1 survived" in text
    assert "The sample is not complete: 299 of 300 mutants were not run." in text
    assert "| `a < b → a > b` | **not argued** |" in text
