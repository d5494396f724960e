"""Reading task files: which values are read, and that a file that cannot be read gives one clear line as the
error.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.description import Description, read
from assay.errors import DescriptionError
from protocol.chain.parameters import TOKEN

EXAMPLES = Path(__file__).parents[3] / "examples"
DIGITS = (EXAMPLES / "digits.toml").read_text()


def written(folder: Path, text: str) -> Path:
    (folder / "digits.py").touch()
    file = folder / "task.toml"
    file.write_text(text)
    return file


def test_the_example_is_read() -> None:
    description = read(EXAMPLES / "digits.toml")
    assert (description.task.name, description.steps) == ("digits", 400)
    assert description.source == EXAMPLES / "digits.py"
    fields = description.terms.fields()
    assert (fields["budget"], fields["audit_fee"]) == (100 * TOKEN, 2 * TOKEN)
    assert (fields["verifiers"], fields["bidding_period"]) == (1, 8)
    assert description.result.evaluate == "held_out_accuracy"


def test_thinning_is_read_where_it_is_given(tmp_path: Path) -> None:
    assert "thinning" not in read(written(tmp_path, DIGITS)).terms.fields()
    given = DIGITS.replace("stake = 1000", "stake = 1000\nthinning = 16")
    assert read(written(tmp_path, given)).terms.fields()["thinning"] == 16


def test_a_fraction_of_a_token_is_exact(tmp_path: Path) -> None:
    text = DIGITS.replace("audit_fee = 2", 'audit_fee = "0.000000000000000001"')
    assert read(written(tmp_path, text)).terms.fields()["audit_fee"] == 1


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("segments = 8", "segments = 0", "task.segments"),
        ("segments = 8", "segments = 8.5", "task.segments"),
        ("segments = 8", "segments = 2000000", "task.segments"),
        ("seed = 20261120", "seed = -1", "task.seed"),
        ('name = "digits"', 'name = "../digits"', "task.name"),
        ('build = "build"', 'build = "__import__(1)"', "task.build"),
        ("budget = 100", "budget = -1", "terms.budget"),
        ("budget = 100", 'budget = "much"', "terms.budget"),
        ("budget = 100", "budget = nan", "terms.budget"),
        ("budget = 100", "budgets = 100", "terms.budget"),
        ('source = "digits.py"', f'source = "{"a" * 5_000}"', "task.source"),
        ("[task]", 'folder = "elsewhere"\n[task]', "folder"),
        ("[task]", 'place = "elsewhere"\n[task]', "place"),
        ("stake = 1000", "stake = 1000\nspeed = 3", "terms.speed"),
        ("verifiers = 1 ", "verifiers = 33 ", "terms.verifiers"),
        ("seat_lock = 5 ", "seat_lock = -5 ", "terms.seat_lock"),
        ("bidding_period = 8", "bidding_period = 0", "terms.bidding_period"),
        ("stake = 1000", "stake = 1000\nthinning = 3", "terms.thinning"),
        ("stake = 1000", "stake = 1000\nlook_chance = 10_001", "terms.look_chance"),
        ("stake = 1000", "stake = 1000\nmove_time = 0", "terms.move_time"),
        ("[terms]", "[conditions]", "conditions"),
        ('source = "digits.py"', 'source = "nowhere.py"', "task.source"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, old: str, new: str, named: str) -> None:
    assert old in DIGITS
    with pytest.raises(DescriptionError, match=f"{named}.*: "):
        read(written(tmp_path, DIGITS.replace(old, new, 1)))


@pytest.mark.parametrize("text", ["[task", "task = 1 = 2", '"' * 9])
def test_what_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DescriptionError, match="expected TOML"):
        read(written(tmp_path, text))


def test_a_file_that_is_missing_binary_or_huge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="FileNotFoundError"):
        read(tmp_path / "none.toml")
    with pytest.raises(DescriptionError, match="IsADirectoryError"):
        read(tmp_path)
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    with pytest.raises(DescriptionError, match="expected TOML"):
        read(tmp_path / "binary.toml")
    (tmp_path / "huge.toml").write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(DescriptionError, match="at most 1048576 bytes"):
        read(tmp_path / "huge.toml")


def test_nothing_of_the_source_is_run_by_reading(tmp_path: Path) -> None:
    file = written(tmp_path, DIGITS)
    (tmp_path / "digits.py").write_text("raise SystemExit")
    assert isinstance(read(file), Description)
