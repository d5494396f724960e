"""The command `sim`: quick help, one line and an exit code per mistake, JSON output, and a whole run."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sim.parameters import MarketParameters, unit_of

HEAVY = ("numpy", "pyarrow", "matplotlib", "rich.progress", "sim.results.results")
MOST_TIMES = 1.6
"""The limit on the processor time of `sim --help`, relative to a bare Typer command.

On an idle core the two commands take 0.24 s and 0.2 s.
"""
BARE = "import typer\napp = typer.Typer()\n@app.command()\ndef run(): pass\napp()"
START = "import sim.cli as cli; cli.main()"
TINY = """
import time
import numpy as np
from sim.studies.study import Answer, Claim, Finding, Study
class Tiny(Study):
    name = 'tiny'
    question = 'Does it go on?'
    runs = 2
    rounds = 3
    def axes(self):
        return {'gain': range(12)}
    def play(self, point, *, runs, rounds, seed):
        time.sleep(0.1)
        return {'luck': np.random.default_rng(seed).random(runs)}
    def answer(self, table):
        return Answer([Finding('No.')], [Claim('one is two', 2.0, 1.0, 0.1, draws=6)])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.py").write_text(TINY)
    return tmp_path


def run(*arguments: object, folder: Path, code: str = START) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["sweep", "--help"]], ids=" ".join)
def test_help_loads_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    code = (
        "import sys, sim.cli as cli\n"
        "try:\n    cli.main()\n"
        "except SystemExit:\n"
        f"    print('loaded:', *sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    printed = run(*arguments, folder=tmp_path, code=code).stdout
    assert "Usage:" in printed
    assert printed.splitlines()[-1] == "loaded:"


def test_help_takes_little_more_than_typer_itself(tmp_path: Path) -> None:
    ratios = [
        seconds("--help", folder=tmp_path, code=START) / seconds("--help", folder=tmp_path, code=BARE)
        for _ in range(5)
    ]
    assert min(ratios) < MOST_TIMES


def seconds(*arguments: object, folder: Path, code: str) -> float:
    """The processor time that the command uses. It does not depend on other work on the machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Usage:" in run(*arguments, folder=folder, code=code).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


WRONG = [
    (["run", "baselin"], "did you mean baseline"),
    (["run", "none.py"], "expected a readable file"),
    (["run", "baseline", "--param", "stakke=1"], "did you mean stake"),
    (["run", "baseline", "--param", "stake=-1"], "stake: expected 0 to 1,000,000,000 tokens, got -1;"),
    (["run", "baseline", "--param", "stake=1:3"], "`sim sweep` takes several"),
    (["run", "baseline", "--jobs", "2", "--ray", "auto"], "--ray"),
    (["run", "all", "--param", "stake=1"], "expected no --param"),
    (["run", "baseline", "--out", "file"], "expected a folder that can be written"),
    (["sweep", "baseline"], "at least one --param"),
    (["sweep", "baseline", "--param", "stake=9:1"], "empty"),
    (["sweep", "baseline", "--param", "honest_share=2"], "honest_share: expected 0 to 1"),
    (["report"], "expected a folder of results, got none"),
    (["report", "file"], "expected a folder of results, got none"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[" ".join(a) for a, _ in WRONG])
def test_a_mistake_is_one_clear_line_and_an_exit_code(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    (tmp_path / "file").write_text("")
    done = run(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    errors = done.stderr.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert words in errors[0]


def test_lists_are_for_people_and_for_programs(tmp_path: Path) -> None:
    assert "Does the engine meet the closed forms" in run("list", folder=tmp_path).stdout
    told = json.loads(run("list", "--json", folder=tmp_path).stdout)
    assert (told["version"], told["command"]) == (1, "list")
    assert next(row for row in told["data"] if row["study"] == "baseline")["points"] == 28
    rows = json.loads(run("list", "--parameters", "--json", folder=tmp_path).stdout)["data"]
    stake = next(row for row in rows if row["name"] == "stake")
    default = unit_of("stake").format(MarketParameters().stake)
    assert (stake["unit"], stake["default"], stake["least"]) == ("tokens", default, "0")
    own = next(row for row in rows if row["name"] == "honest_share")
    assert (own["study"], own["most"]) == ("baseline", "1")


def test_the_baseline_is_played_and_reported(tmp_path: Path) -> None:
    done = run("run", "baseline", "--runs", 2, "--rounds", 2, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["data"]
    assert (told["study"], told["points"], told["rows"]) == ("baseline", 28, 56)
    assert len(told["claims"]) == 3 * 28
    assert "28/28 points" in done.stderr
    assert (tmp_path / "build/sim/baseline/report.html").read_text().startswith("<!doctype html>")


def test_a_second_run_plays_nothing_and_another_question_is_refused(folder: Path) -> None:
    assert run("run", "tiny.py", "--jobs", 2, folder=folder).returncode == 0
    here = folder / "build/sim/tiny"
    before = {path: path.stat().st_mtime_ns for path in (here / "parts").iterdir()}
    assert "24 rows in build/sim/tiny" in run("run", "tiny.py", folder=folder).stdout
    assert {path: path.stat().st_mtime_ns for path in (here / "parts").iterdir()} == before
    refused = run("run", "tiny.py", "--seed", 1, folder=folder)
    assert refused.returncode == 2
    assert "seed is 0 there and 1 here" in refused.stderr
    assert run("run", "tiny.py", "--seed", 1, "--fresh", folder=folder).returncode == 0
    (here / "report.html").unlink()
    assert run("report", folder=folder).stdout == "build/sim/tiny/report.html\n"
    assert (here / "report.html").exists()


def test_a_sweep_plays_every_combination(folder: Path) -> None:
    values = ["--param", "stake=300:500:3", "--param", "audits=1:2", "--param", "gain=5"]
    done = run("sweep", "tiny.py", *values, "--out", "here", "--json", folder=folder)
    assert json.loads(done.stdout)["data"]["points"] == 6
    axes = json.loads((folder / "here/manifest.json").read_text())["question"]["axes"]
    assert axes["stake"] == {"unit": "tokens", "values": [300_000_000, 400_000_000, 500_000_000]}
    assert axes["segments_per_verifier"]["values"] == [1, 2]


def test_a_claim_that_does_not_hold_is_said_and_strict_ends_with_2(folder: Path) -> None:
    done = run("run", "tiny.py", folder=folder)
    assert done.returncode == 0
    assert "- No.\n0 of 1 claims hold with both seeds, 0 of them weakly\n" in done.stdout
    assert "does not hold: one is two: 2 ± 0.4 expected (20.0%), 1 and 1 played" in done.stdout
    assert run("run", "tiny.py", "--strict", folder=folder).returncode == 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process_and_the_same_command_finishes_it(
    folder: Path, how: int
) -> None:
    arguments = ["run", "tiny.py", "--out", "here", "--jobs", "2"]
    command = [sys.executable, "-c", START, *arguments]
    # Background jobs of a shell ignore SIGINT, and so would this command if it inherited that.
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, preexec_fn=heard
    ) as process:
        deadline = time.monotonic() + 60
        while len(list(folder.glob("here/parts/*.parquet"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        workers = children(process.pid)
        assert workers
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert errors.endswith("the same command goes on with what here holds\nerror: interrupted\n")
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, workers))
    kept = {path: path.read_bytes() for path in folder.glob("here/parts/*.parquet")}
    assert 2 <= len(kept) < 12
    assert "24 rows in here" in run(*arguments, folder=folder).stdout
    assert len(list(folder.glob("here/parts/*.parquet"))) == 12
    assert all(path.read_bytes() == rows for path, rows in kept.items())


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.getuid() and "(zombie)" not in status(pid)
    except FileNotFoundError:
        return False


def status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()
