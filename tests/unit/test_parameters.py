"""Deployment parameters in files: amounts are exact to the unit, and bad fields are named."""

from dataclasses import fields
from pathlib import Path

import pytest

from protocol.chain.parameters import (
    DEVNET,
    PRESETS,
    RECOMMENDED,
    TOKEN,
    Parameters,
    ParametersError,
    load_parameters,
)

DEVNET_FILE = (PRESETS / "devnet.toml").read_text()


def test_every_preset_is_read() -> None:
    for file in PRESETS.glob("*.toml"):
        assert load_parameters(file.stem) == load_parameters(str(file))


def test_amounts_are_whole_tokens_to_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(DEVNET_FILE.replace('"0.1"', '"0.000000000000000003"').replace('"10"', "7"))
    own = load_parameters(str(file))
    assert (own.draw_fee, own.stake_unit) == (3, 7 * TOKEN)
    assert own.game_floor == DEVNET.game_floor


def test_the_recommended_ones_give_an_l1_its_time() -> None:
    day = 86_400
    assert 3_600 <= RECOMMENDED.draw_delay <= day
    assert RECOMMENDED.stall_period >= 30 * day
    assert day <= RECOMMENDED.min_clock <= RECOMMENDED.max_clock <= 7 * day
    assert RECOMMENDED.unbonding_period >= RECOMMENDED.draw_delay + RECOMMENDED.stall_period


@pytest.mark.parametrize("name", [known.name for known in fields(Parameters)])
def test_a_missing_field_is_named(name: str, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("".join(line for line in DEVNET_FILE.splitlines(True) if not line.startswith(name)))
    with pytest.raises(ParametersError, match=f"got no {name}"):
        load_parameters(str(file))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('draw_fee = "0.1"', "draw_fee = 0.1", "draw_fee"),
        ('draw_fee = "0.1"', 'draw_fee = "-1"', "draw_fee"),
        ('draw_fee = "0.1"', 'draw_fee = "0.0000000000000000001"', "draw_fee"),
        ('draw_fee = "0.1"', 'draw_fee = "NaN"', "draw_fee"),
        ("stall_period = 900", "stall_period = true", "stall_period"),
        ("stall_period = 900", "stall_period = 900\nsurprise = 1", "surprise"),
        ("[parameters]", "[others]", r"\[parameters\]"),
        ("[parameters]", "[parameters", "TOML"),
    ],
)
def test_what_does_not_fit_is_named(old: str, new: str, named: str, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    assert old in DEVNET_FILE
    file.write_text(DEVNET_FILE.replace(old, new))
    with pytest.raises(ParametersError, match=named):
        load_parameters(str(file))


@pytest.mark.parametrize("source", ["nowhere", "nowhere.toml", "../devnet"])
def test_a_source_that_is_not_there_names_the_presets(source: str) -> None:
    with pytest.raises(ParametersError, match="devnet, recommended"):
        load_parameters(source)
