"""What is mutated, and which tests are run on the mutants of each file, the quickest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Stages = Sequence[tuple[str, ...]]
"""The arguments of test runs, in the order in which they are made; the first that fails kills the mutant."""


@dataclass(frozen=True)
class Language:
    """`folders` maps the path of a file or folder in the repository to the stages of its tests. A file
    belongs to the longest path that contains it. `generator` is the script that proposes mutants.
    """

    name: str
    suffix: str
    generator: str
    folders: Mapping[str, Stages]

    def files(self, root: Path) -> list[str]:
        """Paths in the repository of all files that are mutated."""
        found: set[str] = set()
        for folder in self.folders:
            path = root / folder
            inside = path.glob(f"*{self.suffix}") if path.is_dir() else [path]
            found.update(str(one.relative_to(root)) for one in inside if one.name != "__init__.py")
        return sorted(found)

    def folder(self, file: str) -> str:
        """The entry of `folders` that a file belongs to."""
        return max((one for one in self.folders if file.startswith(one)), key=len)


GAMES: Final = ("games", "partial_sum_games", "game_view", "unit_games", "nested_games", "solver_games")
REFERENCE: Final = ("reference", "philox", "types", "vectors", "exact")
JURIES: Final = ("tests/chain/test_verifier_juries.py", "tests/chain/test_second_looks.py")
PARALLEL: Final = ("-n", "4")
"""Four tests run at once, because many of them wait for blocks."""
PYTHON: Final = Language(
    "python",
    ".py",
    "python_mutants.py",
    {
        "protocol/numerics/reference": [
            tuple(f"tests/unit/numerics/test_{name}.py" for name in REFERENCE),
            (*PARALLEL, "tests/unit/numerics", "tests/unit/vectors"),
        ],
        "protocol/commitments": [
            ("tests/unit/commitments", "tests/unit/dispute"),
            (*PARALLEL, *(f"tests/unit/{name}" for name in ("vectors", "execution", "tasks", "solver"))),
            (*PARALLEL, "tests/unit/verifier", *JURIES),
        ],
        "protocol/dispute": [
            ("tests/unit/dispute",),
            ("tests/chain/test_partial_sum_games.py", "tests/chain/test_game_view.py"),
            (*PARALLEL, "tests/unit/vectors", "tests/unit/verifier", "tests/unit/tasks"),
            (*PARALLEL, *(f"tests/chain/test_{name}.py" for name in GAMES)),
            (*PARALLEL, *JURIES),
        ],
    },
)

GAS_TESTS: Final = "[gG]as|costTheAskerTwice"
"""A pattern for the names of tests that fail in the profile `mutation`. That profile builds without the
optimiser, so contracts use more gas.
"""
LESS_GAS: Final = ("--no-match-contract", "Gas", "--no-match-test")
ALL: Final = (*LESS_GAS, GAS_TESTS)


def _forge(*paths: str) -> Stages:
    """Two stages. The first runs the tests in `paths` below contracts/test, except fuzz and invariant tests;
    the second runs all tests. Both leave out the tests of gas.
    """
    quick = (*LESS_GAS, f"{GAS_TESTS}|testFuzz|invariant")
    return [(*quick, "--match-path", f"contracts/test/{{{','.join(paths)}}}"), ALL]


GAME: Final = _forge("dispute/**", "attacks/**")
AUDIT: Final = _forge("audit/**", "juries/**", "looks/**")
TREES: Final = _forge("libraries/**", "vectors/Trees.t.sol")
SOLIDITY: Final = Language(
    "solidity",
    ".sol",
    "solidity_mutants.py",
    {
        "contracts/src/Evidence.sol": GAME,
        "contracts/src/dispute/Claims.sol": GAME,
        "contracts/src/dispute/Demands.sol": GAME,
        "contracts/src/dispute/Splits.sol": GAME,
        "contracts/src/dispute/Judgments.sol": GAME,
        "contracts/src/libraries/Rfc9162.sol": TREES,
        "contracts/src/libraries/SplitParts.sol": GAME,
        "contracts/src/AuditBoard.sol": AUDIT,
        "contracts/src/Juries.sol": AUDIT,
        "contracts/src/Looks.sol": AUDIT,
        "contracts/src/audit": AUDIT,
        "contracts/src/libraries/Digests.sol": AUDIT,
        "contracts/src/libraries/DrawWords.sol": AUDIT,
        "contracts/src/libraries/Fees.sol": AUDIT,
        "contracts/src/libraries/Picks.sol": AUDIT,
        "contracts/src/libraries/Pool.sol": AUDIT,
    },
)
LANGUAGES: Final = {language.name: language for language in (PYTHON, SOLIDITY)}
