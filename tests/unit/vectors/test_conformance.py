"""The package gives the right answer to every row of the vectors, and the runner finds wrong answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

import pytest

from protocol.program import ProgramError, decode_closure
from tests.unit.vectors.plain_trees import PlainTrees
from tests.vectors.__main__ import main
from tests.vectors.conformance import Difference, replay
from tests.vectors.implementation import Trees
from tests.vectors.package import Package
from tests.vectors.readings import FILES, FOLDER, Case, Not

MEASURED = {"gas.json"}
"""Files with measurements of the contracts, which are not replayed."""


@pytest.mark.parametrize("file", FILES)
def test_the_package_has_the_answers_of_every_file(file: str) -> None:
    for section in replay(Package(), [file]):
        assert [str(difference) for difference in section.differences] == []
        assert section.missing == set()
        assert section.compared > 0


def test_every_vector_file_is_replayed() -> None:
    assert {path.name for path in FOLDER.glob("*.json")} == set(FILES) | MEASURED


def test_every_section_of_a_file_is_replayed() -> None:
    for file, sections in FILES.items():
        document = json.loads((FOLDER / file).read_text())
        document = document["functions"] if file == "elementary_errors.json" else document
        tables = {name for name, table in document.items() if isinstance(table, dict)}
        assert tables <= {name for name, _ in sections()}, file


def test_rows_are_compared_one_by_one() -> None:
    counts = {section.name: section.compared for section in replay(Package(), ["trees.json"])}
    assert (counts["roots"], counts["refused_paths"], counts["refused_consistency"]) == (70, 197, 220)


# ------------------------------------------------------------------ a second implementation


def test_the_rfcs_own_recursion_has_the_same_trees() -> None:
    second: Trees = PlainTrees()
    for section in replay(second, ["trees.json"]):
        assert section.differences == []
        assert section.missing == set()


class OneByteLeaf(PlainTrees):
    """Omits the prefix of leaves."""

    def leaf(self, data: bytes) -> bytes:
        return sha256(data).digest()


class EvenSplit(PlainTrees):
    """Splits in the middle, not at the largest power of two below the size."""

    def split(self, size: int) -> int:
        return size // 2


class AnyPath(PlainTrees):
    """Accepts a path that is too long."""

    def root_from_path(
        self, tree_size: int, lo: int, size: int, node: bytes, path: Sequence[bytes]
    ) -> bytes | None:
        for length in range(len(path), -1, -1):
            if (root := super().root_from_path(tree_size, lo, size, node, path[:length])) is not None:
                return root
        return None


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (OneByteLeaf, {"roots", "paths", "consistency", "tensors"}),
        (EvenSplit, {"roots", "paths", "consistency", "descendants", "tensors"}),
        (AnyPath, {"refused_paths"}),
    ],
)
def test_a_planted_difference_is_found_where_it_is(wrong: type[PlainTrees], where: set[str]) -> None:
    found = {section.name: section.differences for section in replay(wrong(), ["trees.json"])}
    assert where <= {name for name, differences in found.items() if differences}
    assert wrong is not AnyPath or not any(found[name] for name in found.keys() - where)


def test_one_wrong_bit_in_one_row_is_found() -> None:
    class OneBit(Package):
        def evaluate(
            self, name: str, attributes: bytes, operands: Sequence[tuple[bytes, bytes]], result: bytes
        ) -> bytes:
            data = super().evaluate(name, attributes, operands, result)
            return data[:-1] + bytes([data[-1] ^ 1]) if name == "tanh" else data

    (difference,) = [d for section in replay(OneBit(), ["numerics.json"]) for d in section.differences]
    assert (difference.section, difference.case.arguments[0]) == ("functions", "tanh")
    assert "from byte" in str(difference)


def test_an_exception_is_a_wrong_answer_and_the_rest_is_compared() -> None:
    class Raises(PlainTrees):
        def tensor_root(self, data: bytes) -> bytes:
            raise MemoryError("no room")

    *others, tensors = replay(Raises(), ["trees.json"])
    assert not any(section.differences for section in others)
    assert {type(difference.got) for difference in tensors.differences} == {MemoryError}
    assert "no room" in str(tensors.differences[0])


def test_an_exception_is_no_refusal() -> None:
    class Raises(PlainTrees):
        def root_from_path(
            self, tree_size: int, lo: int, size: int, node: bytes, path: Sequence[bytes]
        ) -> bytes | None:
            raise MemoryError("no room")

    (refused,) = [section for section in replay(Raises(), ["trees.json"]) if section.name == "refused_paths"]
    assert len(refused.differences) == refused.compared > 100
    assert "test_conformance.py:" in str(refused.differences[0])


def test_programs_that_only_decode_are_noticed() -> None:
    class Unchecked(Package):
        def reencode_program(self, closure: Sequence[bytes]) -> bytes | None:
            try:
                return decode_closure(closure).encode()
            except ProgramError:
                return None

    (refused,) = [s for s in replay(Unchecked(), ["programs.json"]) if s.name == "refused_programs"]
    assert len(refused.differences) == refused.compared - 3  # these do not even decode
    assert any("(a row of 12 bytes): reencode_program" in str(found) for found in refused.differences)


def test_what_is_missing_is_said() -> None:
    (walks,) = replay(PlainTrees(), ["walks.json"])
    assert (walks.compared, walks.missing) == (0, {"chunk_of_walk", "turns", "walk_to"})
    assert "not implemented: chunk_of_walk, turns, walk_to" in str(walks)


def test_any_answer_but_one() -> None:
    assert Not(b"x") == b"y"
    assert Not(b"x") != b"x"
    assert Not(b"x") == None  # noqa: E711


def test_long_answers_are_shown_from_where_they_differ() -> None:
    case = Case(3, "evaluate", (), bytes(200))
    text = str(Difference("numerics.json", "functions", case, bytes(199) + b"\1"))
    assert text == ("numerics.json functions, row 3: evaluate, from byte 199 on: expected 0x00, got 0x01")
    short = str(Difference("numerics.json", "functions", case._replace(note="exp"), bytes(199)))
    assert short == (
        "numerics.json functions, row 3 (exp): evaluate, 200 and 199 bytes, from byte 199 on: expected 0x00, got 0x"
    )


# ------------------------------------------------------------------ the command


def test_the_command_takes_a_part_where_it_is_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    part = ["--implementation", "tests.unit.vectors.plain_trees:PlainTrees"]
    assert main([*part, "--file", "trees.json"]) == 0
    assert main([*part, "--file", "trees.json", "--file", "walks.json"]) == 1
    assert main([*part, "--file", "walks.json", "--partial"]) == 0
    assert "refused_paths" in capsys.readouterr().out


def test_the_command_fails_on_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--implementation", "tests.unit.vectors.test_conformance:EvenSplit", "--file", "trees.json"]
    assert main(given) == 1
    assert "trees.json roots, row 2: root: expected 0x" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["tests.unit.vectors", "tests.none:Class", "tests.vectors.package:None_"])
def test_the_command_refuses_a_name_without_a_class(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--implementation", name])
    assert end.value.code == 2
    assert "--implementation: expected" in capsys.readouterr().err
