"""The tests change a payment in the contracts, by a unit or in a condition; `sim replay` must then disagree.

The changed contracts are compiled in a separate folder, and the replay deploys them instead of the package's.
They are compiled without the optimiser, because optimising changes no payout and takes nine tenths of the
time. Anvil is told to accept code larger than EIP-170 allows.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from protocol.chain.devnet import anvil_program
from protocol.errors import ExitCode
from scripts.contract_data import documents

REPOSITORY = Path(__file__).resolve().parents[2]

REPLAY: Final = """
import sys
from pathlib import Path
from protocol.chain import abi
abi.DATA = Path(sys.argv.pop(1))
from sim.cli import main
main()
"""
"""A program that runs `sim` with contracts from the folder given as its first argument."""

PROFILE: Final = "unoptimised"
COMPILED: Final = f"""
[profile.{PROFILE}]
via_ir = true
optimizer = false
additional_compiler_profiles = []
compilation_restrictions = []
"""
"""The profile that is appended to foundry.toml."""
ANVIL: Final = """\
#!/bin/sh
exec "{program}" --disable-code-size-limit "$@"
"""

COMMAND_SECONDS: Final = 600
pytestmark = [pytest.mark.chain, pytest.mark.heavy, pytest.mark.timeout(2 * COMMAND_SECONDS + 100)]


class Mutation(NamedTuple):
    """A text in a file under contracts/src, its replacement, and the scenario that shows the difference."""

    file: str
    old: str
    new: str
    story: str


MUTATIONS = (
    Mutation("TaskMarket.sol", "drawer, DRAW_FEE)", "drawer, DRAW_FEE - 1)", "honest"),
    Mutation(
        "TaskMarket.sol", "terms.retrainReward : terms.reward", "terms.reward : terms.reward", "retrained"
    ),
    Mutation(
        "TaskMarket.sol", "terms.retrainReward : terms.reward", "terms.reward : terms.reward + 1", "cheat"
    ),
    Mutation("TaskMarket.sol", "terms.restitution,", "terms.restitution - 1,", "cheat"),
    Mutation("TaskMarket.sol", "entry.escrow, _owed(entry)", "entry.escrow, 0", "retrained_undrawn"),
    Mutation("TaskMarket.sol", "amount += terms.gameCost;", "amount += terms.gameCost - 1;", "cheat"),
    Mutation("TaskMarket.sol", "amount = Fees", "amount = 1 + Fees", "cheat"),
    Mutation("market/Ends.sol", "penalty / 2", "(penalty + 1) / 2", "deadline"),
    Mutation("market/Ends.sol", "entry.bidder, entry.price)", "entry.bidder, entry.price - 1)", "honest"),
    Mutation("market/Ends.sol", "entry.price / 2 : 0", "(entry.price + 1) / 2 : 0", "beacon_stops"),
    Mutation("market/Ends.sol", "account, fee)", "account, fee - 1)", "honest"),
    Mutation("market/Ends.sol", "if (seats[i].attested && !seats[i].caught) VAULT", "VAULT", "unattested"),
    Mutation("market/Ends.sol", "entry.escrow, _owed(entry)", "entry.escrow, 0", "beacon_stops"),
    Mutation("audit/SeatCells.sol", "amount -= DRAW_FEE", "amount -= DRAW_FEE - 1", "silent_seat"),
    Mutation("audit/SeatCells.sol", "fee + DRAW_FEE", "fee + DRAW_FEE - 1", "silent_seat"),
    Mutation(
        "DisputeGame.sol",
        "bond / SOLVER_SHARE",
        "(bond + 1) / SOLVER_SHARE",
        "false_challenge",
    ),
)


STORIES: Final = sorted({mutation.story for mutation in MUTATIONS})


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the unchanged contracts and their build output."""
    folder = tmp_path_factory.mktemp("contracts")
    for name in ("contracts/src", "scripts"):
        shutil.copytree(REPOSITORY / name, folder / name)
    (folder / "foundry.toml").write_text((REPOSITORY / "foundry.toml").read_text() + COMPILED)
    (folder / "node_modules").symlink_to((REPOSITORY / "node_modules").resolve())
    wrapper = folder / "anvil"
    wrapper.write_text(ANVIL.format(program=anvil_program()))
    wrapper.chmod(0o700)
    _compile(folder)
    return folder


@pytest.fixture
def sources(compiled: Path, tmp_path: Path) -> Path:
    """A copy of `compiled`."""
    return shutil.copytree(compiled, tmp_path / "contracts", symlinks=True)


@pytest.mark.parametrize("story", STORIES)
def test_unchanged_contracts_agree(compiled: Path, story: str) -> None:
    done = _replay(compiled, story)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: f"{each.file}: {each.new}")
def test_a_changed_payout_is_found(sources: Path, mutation: Mutation) -> None:
    path = sources / "contracts/src" / mutation.file
    text = path.read_text()
    assert text.count(mutation.old) == 1, f"{mutation.old!r} stands once in {mutation.file}"
    path.write_text(text.replace(mutation.old, mutation.new))
    _compile(sources)
    done = _replay(sources, mutation.story)
    assert done.returncode == ExitCode.FRAUD, done.stdout + done.stderr


def _compile(folder: Path) -> None:
    """Compile the contracts and write their data into the subfolder `data`."""
    done = subprocess.run(
        [os.environ.get("FORGE", "forge"), "build", "contracts/src"],
        cwd=folder,
        env={**os.environ, "FOUNDRY_PROFILE": PROFILE},
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for name, document in documents(folder / "build/contracts/out").items():
        (data / f"{name}.json").write_text(json.dumps(document))


def _replay(folder: Path, story: str) -> subprocess.CompletedProcess[str]:
    """Run `sim replay` of a story with the contracts of a folder."""
    return subprocess.run(
        [sys.executable, "-c", REPLAY, str(folder / "data"), "replay", story],
        env={**os.environ, "ANVIL": str(folder / "anvil")},
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_SECONDS,
    )
