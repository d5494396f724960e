"""Plants mutants in a scratch clone of HEAD, runs the tests of their files there, and keeps each outcome."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Final

from tests.mutation.mutants import ROOT, Mutant, proposed, sample
from tests.mutation.scope import Language

FOLDER: Final = ROOT / "build" / "mutation"
SAMPLE: Final = 300
LIMIT: Final = 900
"""Time limit in seconds for a command. It also holds for a stage of tests that runs without a mutant."""
PATIENCE: Final = 4
LEAST_LIMIT: Final = 60
"""Smallest time limit, in seconds, for a stage of tests with a mutant. The limit is `PATIENCE` times what the
stage takes without a mutant, but at least `LEAST_LIMIT`. A mutant that exceeds the limit counts as killed,
because some mutants never end.
"""
PYTEST: Final = ("-qx", "--ff", "-o", "cache_dir=build/mutation/cache", "-m", "not heavy and not gpu")
"""Arguments of pytest. With `--ff`, the tests that failed in earlier runs come first, because they often
notice the next mutant of the same file as well.
"""


class Fate(StrEnum):
    """What became of a mutant. A mutant that does not compile, or that compiles to the same code as the
    program, is not counted.
    """

    KILLED = "killed"
    SURVIVED = "survived"
    REFUSED = "refused"
    SAME = "same"

    @property
    def is_counted(self) -> bool:
        """Whether the mutant counts towards the sample: it compiles, and its code differs from the program's."""
        return self not in (Fate.REFUSED, Fate.SAME)


@dataclass(frozen=True)
class Outcome:
    """A mutant's fate at a commit. `change` is what was planted; `by` is the number of the stage that killed
    the mutant, counted from 1, or 0 if none did.
    """

    id: str
    language: str
    file: str
    line: int
    operator: str
    change: str
    fate: Fate
    by: int
    commit: str


class Outcomes:
    """The `recorded` outcomes and those in a file, by the mutant's identity. A survivor of another commit is
    tried again unless it is `argued`, because tests may have been added. A killed mutant is not tried again
    as long as the code of its file is the same.
    """

    def __init__(
        self, file: Path, commit: str, recorded: Iterable[Outcome] = (), argued: Container[str] = ()
    ) -> None:
        self._file = file
        self._commit = commit
        self._argued = argued
        self.found = {outcome.id: outcome for outcome in recorded}
        for line in file.read_text().splitlines() if file.is_file() else []:
            outcome = read(json.loads(line))
            self.found[outcome.id] = outcome

    def of(self, name: str) -> Outcome | None:
        """The outcome of the mutant with the identity `name`; None if it has no outcome, or is a survivor
        that must be tried again.
        """
        found = self.found.get(name)
        if found is None or found.fate is not Fate.SURVIVED:
            return found
        return found if found.commit == self._commit or name in self._argued else None

    def add(self, outcome: Outcome) -> None:
        """Keep one more outcome, also in the file."""
        self.found[outcome.id] = outcome
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")


def read(kept: dict[str, object]) -> Outcome:
    """An outcome from the JSON fields in which it was kept."""
    return Outcome(**{**kept, "fate": Fate(str(kept["fate"]))})  # type: ignore[arg-type]


def run(
    language: Language,
    commit: str,
    recorded: Iterable[Outcome],
    argued: Container[str],
    say: Callable[[str], object],
    plays: bool = True,
) -> list[Outcome]:
    """The outcomes of the sample, including those of mutants that do not compile.

    The first stage of tests is run on all mutants. The other stages are run on a mutant only if it survives
    the first stage and is not argued. Outcomes that are `recorded` count like those in the build folder. If
    `plays` is false, no mutant is run, and the outcomes end before the first mutant that has no outcome yet.
    Raises RuntimeError if tests fail without a mutant.
    """
    tree = clone(language)
    outcomes = Outcomes(FOLDER / f"{language.name}.jsonl", commit, recorded, argued)
    if language.name == "solidity":
        for_slither(tree)
    mutants = proposed(language, tree)
    say(f"{language.name}: {len(mutants)} mutants of {len(language.files(tree))} files are proposed")
    drawn: dict[str, Outcome | None] = {}
    player = Player(language, tree, commit, argued)

    def play(name: str, quick: bool) -> Outcome | None:
        outcome = player.play(mutants[name], name, quick)
        if outcome is not None:
            outcomes.add(outcome)
            say(f"{outcome.fate:8} {outcome.file}:{outcome.line} {outcome.operator}: {outcome.change}")
        return outcome

    for name in sample(mutants):
        drawn[name] = outcomes.of(name) or (play(name, quick=True) if plays else None)
        if drawn[name] is None and not plays:
            break
        if sum(one is None or one.fate.is_counted for one in drawn.values()) == SAMPLE:
            break
    if plays:
        drawn = {name: outcome or play(name, quick=False) for name, outcome in drawn.items()}
    return [outcome for outcome in drawn.values() if outcome is not None]


def clone(language: Language) -> Path:
    """A scratch clone of HEAD, with the libraries and contract files that set-up built in this checkout, and a
    link to its node_modules. Each language has a separate clone, so that both can run at once.
    """
    tree = FOLDER / language.name
    if not tree.is_dir():
        subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, tree], check=True)
    if not (tree / "node_modules").is_symlink():
        (tree / "node_modules").symlink_to(ROOT / "node_modules")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True)
    subprocess.run(["git", "fetch", "--quiet", "origin", "HEAD"], cwd=tree, check=True)
    subprocess.run(["git", "checkout", "--quiet", "--force", head.stdout.strip()], cwd=tree, check=True)
    for pattern in ("protocol/*/_native*.so", "protocol/*/*/_native*.so", "protocol/chain/contracts/*.json"):
        for made in ROOT.glob(pattern):
            target = tree / made.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(made, target)
    return tree


class Player:
    """Plants mutants in a clone of the repository and runs their tests. Each test run is first made once
    without a mutant, because in a broken environment every mutant would count as killed.
    """

    def __init__(self, language: Language, tree: Path, commit: str, argued: Container[str] = ()) -> None:
        self._language = language
        self._tree = tree
        self._commit = commit
        self._argued = argued
        self._limits: dict[tuple[str, ...], float] = {}
        self._deployed: Mapping[str, str] | None = None

    def play(self, mutant: Mutant, name: str, quick: bool) -> Outcome | None:
        """The outcome of a mutant. If `quick`, only the first stage of tests is run, otherwise only the other
        stages. With `quick`, the result is None if the other stages are still needed: the mutant survives the
        first stage, is not argued, and does not compile to the same code as the program. The mutated file is
        always restored afterwards. Raises RuntimeError if tests fail without a mutant.
        """
        stages = self._language.folders[self._language.folder(mutant.file)]
        file = self._tree / mutant.file
        source = file.read_bytes()
        fate, by = Fate.SURVIVED, 0
        try:
            for number, stage in enumerate(stages[:1] if quick else stages[1:], 1 if quick else 2):
                file.write_bytes(source)
                limit = self._limit(stage)
                file.write_bytes(mutant.planted(source))
                if not self._passes(stage, limit):
                    fate, by = (Fate.KILLED, number) if self._compiles() else (Fate.REFUSED, 0)
                    break
        finally:
            file.write_bytes(source)
        if quick and fate is Fate.SURVIVED and name not in self._argued:
            if not self._is_same(mutant):
                return None
            fate = Fate.SAME
        line, change, where = mutant.line(source), mutant.change(source), self._language.name
        return Outcome(name, where, mutant.file, line, mutant.operator, change, fate, by, self._commit)

    def _limit(self, stage: tuple[str, ...]) -> float:
        """The time limit in seconds for a stage of tests with a mutant. It is computed once, from the time
        that the stage takes without a mutant. Raises RuntimeError if tests fail without a mutant.
        """
        if stage not in self._limits:
            start = monotonic()
            if not self._passes(stage, LIMIT):
                raise RuntimeError(f"expected {' '.join(stage)} to pass in {self._tree}, which has no mutant")
            self._limits[stage] = max(PATIENCE * (monotonic() - start), LEAST_LIMIT)
        return self._limits[stage]

    def _is_same(self, mutant: Mutant) -> bool:
        """Whether the contracts, compiled as they are deployed, have the same bytes with the mutant as
        without it. Always False for Python.
        """
        if self._language.name != "solidity":
            return False
        if self._deployed is None:
            self._deployed = deployed(self._tree)
        file = self._tree / mutant.file
        source = file.read_bytes()
        try:
            file.write_bytes(mutant.planted(source))
            return deployed(self._tree) == self._deployed
        finally:
            file.write_bytes(source)

    def _compiles(self) -> bool:
        return self._language.name == "python" or forge(self._tree, "build", "contracts/src")

    def _passes(self, stage: tuple[str, ...], limit: float) -> bool:
        if self._language.name == "solidity":
            return forge(self._tree, "test", "--fail-fast", *stage, limit=limit)
        return passes(self._tree, ROOT / ".venv/bin/python", "-m", "pytest", *PYTEST, *stage, limit=limit)


def for_slither(tree: Path) -> None:
    """Compile all contracts for `solidity_mutants.py`, into a folder apart from the mutants' builds. Raises
    RuntimeError if they do not compile.
    """
    out = tree / "build" / "mutation" / "proposed"
    shutil.rmtree(out, ignore_errors=True)
    build = ("build", "contracts/src", "--build-info")
    if not forge(tree, *build, FOUNDRY_OUT=str(out), FOUNDRY_CACHE_PATH=str(out / "cache")):
        raise RuntimeError(f"expected `forge build` to succeed in {tree}, which has no mutant")


def deployed(tree: Path) -> Mapping[str, str]:
    """The bytecode of every contract, compiled with the settings of deployment, by the path of the contract's
    artifact. These settings leave out the hash of the sources. Raises RuntimeError if a contract does not
    compile.
    """
    out = tree / "build" / "mutation" / "deployed"
    places = {"FOUNDRY_OUT": str(out), "FOUNDRY_CACHE_PATH": str(out / "cache"), "FOUNDRY_DENY": "never"}
    program = os.environ.get("FORGE", "forge")
    if not passes(tree, program, "build", "contracts/src", limit=LIMIT, FOUNDRY_PROFILE="default", **places):
        raise RuntimeError(f"expected `forge build` to succeed in {tree}")
    artifacts = {path: json.loads(path.read_text()) for path in sorted(out.glob("*.sol/*.json"))}
    return {
        str(path.relative_to(out)): artifact["bytecode"]["object"] + artifact["deployedBytecode"]["object"]
        for path, artifact in artifacts.items()
    }


def forge(tree: Path, *arguments: str, limit: float = LIMIT, **environment: str) -> bool:
    """Run forge with the profile `mutation`; returns whether it succeeds within `limit` seconds."""
    program = os.environ.get("FORGE", "forge")
    return passes(tree, program, *arguments, limit=limit, FOUNDRY_PROFILE="mutation", **environment)


def passes(tree: Path, *command: object, limit: float, **environment: str) -> bool:
    """Whether a command in the tree succeeds within `limit` seconds; afterwards its process group is killed."""
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(limit) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
