"""`assay submit` derives the amounts that a file leaves out, and reports them."""

import re
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path

import pytest

from assay.deriving import Derived, Place
from assay.description import read
from assay.errors import DescriptionError
from protocol.chain.parameters import DEVNET, RECOMMENDED, TOKEN
from protocol.chain.periods import Load
from protocol.chain.recommendation import GAS_PRICE, RULES, gas_units, setting
from protocol.tasks.amounts import OPTIONAL, derive
from protocol.tasks.task import replay_allowance

BUDGET = 100 * TOKEN
EXAMPLES = Path(__file__).parents[2] / "examples"
LOAD = Load(8, 50, 2_900_000, 3_000, 100_000)
ALLOWANCE = replay_allowance(LOAD.segment_steps, LOAD.step_operations, LOAD.state_bytes)


def described(folder: Path, left_out: list[str], segments: int = 8) -> Path:
    """The example's file without some of its fields."""
    lines = (EXAMPLES / "digits.toml").read_text().replace("segments = 8", f"segments = {segments}")
    (folder / "digits.py").touch()
    file = folder / "task.toml"
    file.write_text("".join(line for line in lines.splitlines(True) if line.split(" =")[0] not in left_out))
    return file


def derived(file: Path, place: Place | None = None) -> Derived:
    """The file's amounts, by default on a development chain."""
    return Derived.of(read(file), place or Place(DEVNET), LOAD)


def test_a_file_that_gives_no_amounts_asks_for_the_derived_ones(tmp_path: Path) -> None:
    found = derived(described(tmp_path, list(OPTIONAL)))
    made = setting(
        DEVNET,
        budget=BUDGET,
        segments=8,
        training_period=90,
        challenge_period=60,
        game_time=600 + ALLOWANCE,
    )
    assert found.amounts == derive(made, RULES)
    assert found.amounts.verifiers == RULES.verifiers


def test_what_a_file_gives_stays(tmp_path: Path) -> None:
    left_out = ["restitution", "seat_lock"]
    found = derived(described(tmp_path, left_out))
    given = read(described(tmp_path, left_out)).terms.fields()
    assert {name: value for name, value in asdict(found.amounts).items() if name in given} == {
        name: value for name, value in given.items() if name in OPTIONAL
    }
    assert found.lines()[0] == (
        "derived for 8 segments and this budget: restitution 100, seat_lock 4.1, retrain_reward 125"
    )


@pytest.mark.parametrize("name", ["digits", "gpt"])
def test_the_examples_are_posted_by_a_stake_of_1000_that_deters_at_one_seat(name: str) -> None:
    found = derived(EXAMPLES / f"{name}.toml")
    assert found.amounts.stake == 1000 * TOKEN
    assert not any(line.startswith("note:") for line in found.lines())


def test_the_price_of_trust_is_said_and_reported_in_parts(tmp_path: Path) -> None:
    found = derived(described(tmp_path, list(OPTIONAL)))
    said, told = found.lines()[-1], found.report()
    assert said.startswith(
        "trust costs 41.4 % of the budget: audit fees 41.3 %, draws and gas 0.144 %, capital of "
    )
    assert said.endswith(
        "(capital at 10 % a year, gas at 0.01 gwei, 3000 tokens for a coin); no audit guarantee: seats that replay "
        "nothing are paid, data withheld from honest seats come before no jury"
    )
    parts = [told[name] for name in ("audit_fees", "looks", "draws_and_gas", "stake", "locks")]
    assert sum(parts) == told["total"] == pytest.approx(told["share_of_budget"] * BUDGET)


def looked(found: Derived, **given: int) -> Derived:
    """What is derived for the same task with second looks. Amounts in `given` are kept and not derived."""
    made = replace(found.setting, look_chance=None)
    return replace(found, setting=made, amounts=derive(made, RULES, given))


def test_looks_are_said_and_reported_in_the_price_of_trust(tmp_path: Path) -> None:
    plain = derived(described(tmp_path, list(OPTIONAL)))
    found = looked(plain)
    assert not any("look" in line for line in plain.lines())
    assert re.search(r"audit fees [\d.]+ %, looks [\d.]+ %, draws and gas", found.lines()[1])
    assert len(found.lines()) == 2
    told = found.report()
    assert told["looks"] > 0
    assert (
        sum(told[name] for name in ("audit_fees", "looks", "draws_and_gas", "stake", "locks"))
        == told["total"]
    )


def test_a_seat_lock_that_deters_nobody_is_said(tmp_path: Path) -> None:
    found = looked(derived(described(tmp_path, list(OPTIONAL))), seat_lock=20 * TOKEN, look_chance=1_000)
    assert found.lines()[-1].startswith(
        "note: a seat lock of 20 deters no seat from attesting without a replay; with"
    )


def test_prices_are_those_of_the_settings() -> None:
    place = Place.at(RECOMMENDED, Decimal("2.5"), Decimal(100))
    assert gas_units(place.gas_price, place.coin_price) == 250 * 10**9 * TOKEN // 10**18
    assert Place.at(RECOMMENDED, None, None) == Place(RECOMMENDED, GAS_PRICE)
    dear = derived(EXAMPLES / "digits.toml", place)
    assert (
        dear.trust.draws_and_gas > derived(EXAMPLES / "digits.toml", Place(RECOMMENDED)).trust.draws_and_gas
    )


def test_a_stake_that_deters_nobody_is_said(tmp_path: Path) -> None:
    file = described(tmp_path, [])
    file.write_text(file.read_text().replace("stake = 1000", "stake = 500"))
    assert derived(file).lines()[-1].startswith("note: a stake of 500 deters no solver to whom")


@pytest.mark.parametrize("name", ["verifiers", "segments_per_verifier"])
def test_a_stake_without_its_audit_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=f"beside a stake.*{name} not there"):
        read(described(tmp_path, [name]))
    assert read(described(tmp_path, [name, "stake"])).task.segments == 8
