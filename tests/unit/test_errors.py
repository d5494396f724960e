"""All errors share one base class and one form of message. Each error is in the tree in the docstring of
`protocol.errors`.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator

import pytest

import protocol.errors
from protocol.chain.errors import (
    AccountInUse,
    ChainError,
    DeploymentError,
    NotMined,
    PortInUse,
    RpcRefused,
    RpcUnavailable,
    UnstableChain,
)
from protocol.commitments.errors import CommitmentError
from protocol.dispute.errors import NothingToChallenge
from protocol.errors import AssayError, ExitCode, InternalError, Retryable, exit_code_of
from protocol.execution.workers.errors import WorkerFailed, WorkerLost
from protocol.numerics.errors import SelfCheckError
from protocol.numerics.kernels.dispatch import NoKernel
from protocol.numerics.types import NumericsError
from protocol.program.errors import ProgramError
from protocol.program.parallel.errors import TooManyProcesses
from protocol.tasks.bundles import BundleError
from protocol.tasks.economics import StakeError
from protocol.tasks.task import TermsError
from sim.errors import Disagreement
from sim.theory import TheoryError
from solver.errors import KeepingError, StakeSlashed
from tests.toolchain.project import REPOSITORY

PRODUCT = ("protocol", "solver", "verifier", "assay", "sim", "examples")
BUILT_IN = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (AssayError(), ""),
        (AssayError("all in one"), "all in one"),
        (AssayError("port", expected=1, got=0, remedy="look"), "port: expected 1, got 0; look"),
        (AssayError(expected="a", got="b"), "expected a, got b"),
        (AssayError("file", got="", remedy="write it"), "file: got ; write it"),
        (AssayError("file", remedy="write it"), "file; write it"),
        (
            ProgramError("a", "b", instruction=3, operation="add"),
            "instruction 3: add: expected a, got b",
        ),
        (ProgramError("a", "b"), "expected a, got b"),
    ],
)
def test_the_message_is_made_of_the_fields_that_are_given(error: AssayError, message: str) -> None:
    assert str(error) == message


def test_fields_are_kept_as_text() -> None:
    error = TermsError("segments", "an integer from 1 to 3", 4)
    assert (error.expected, error.got) == ("an integer from 1 to 3", "4")
    assert error.remedy == "correct this field and post again"
    processes = TooManyProcesses(2, 5)
    assert processes.got == "5"
    assert processes.remedy == "start at most 2, or capture the step with more micro_batches"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RpcUnavailable("http://127.0.0.1:1", OSError()), ExitCode.RETRY),
        # A node that is a block behind, and an overloaded node.
        (RpcRefused("block 7", "none of that number or hash"), ExitCode.RETRY),
        (RpcRefused("eth_call", "too many requests"), ExitCode.RETRY),
        (NotMined("deploy"), ExitCode.RETRY),
        (UnstableChain("blocks"), ExitCode.RETRY),
        (AccountInUse("account"), ExitCode.RETRY),
        (PortInUse("devnet"), ExitCode.RETRY),
        (ChainError("chain"), ExitCode.HOPELESS),
        (DeploymentError("deployment", expected="a file", got="none", remedy="deploy"), ExitCode.HOPELESS),
        (CommitmentError("root"), ExitCode.HOPELESS),
        (BundleError("bundle"), ExitCode.HOPELESS),
        (NoKernel("kernels"), ExitCode.HOPELESS),
        (SelfCheckError("bits"), ExitCode.HOPELESS),
        (ProgramError("a", "b"), ExitCode.HOPELESS),
        (TermsError("segments", "1", 0), ExitCode.HOPELESS),
        (StakeError("stake"), ExitCode.HOPELESS),
        (TheoryError("stake"), ExitCode.HOPELESS),
        (WorkerLost("rank 1"), ExitCode.RETRY),
        (WorkerFailed("rank 1"), ExitCode.HOPELESS),
        (Retryable("later"), ExitCode.RETRY),
        (KeepingError("disk full"), ExitCode.RETRY),
        (StakeSlashed("task 3"), ExitCode.FRAUD),
        (Disagreement("balances"), ExitCode.FRAUD),
        (NumericsError("a tensor of another type"), None),
        (NothingToChallenge("equal"), None),
        (InternalError("not handled"), None),
        (ZeroDivisionError(), None),
        (KeyboardInterrupt(), None),
    ],
)
def test_the_class_says_the_exit_code(error: BaseException, code: ExitCode | None) -> None:
    assert exit_code_of(error) is code


@pytest.mark.parametrize(
    ("kind", "built_in"),
    [
        *((kind, ValueError) for kind in (ProgramError, NumericsError, TermsError, StakeError, TheoryError)),
        *((kind, RuntimeError) for kind in (NoKernel, SelfCheckError)),
    ],
)
def test_who_knows_only_pythons_own_errors_catches_these_too(
    kind: type[AssayError], built_in: type[Exception]
) -> None:
    assert issubclass(kind, built_in)


def _classes() -> Iterator[tuple[str, str]]:
    """For each class in the product that has a base class: its name, and the name of its first base."""
    for top in PRODUCT:
        for path in sorted((REPOSITORY / top).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and node.bases:
                    yield node.name, ast.unparse(node.bases[0]).rpartition(".")[2]


def _errors() -> Counter[tuple[str, str]]:
    """(name, first base) of every exception class, found by the names of bases."""
    classes = list(_classes())
    errors: set[str] = set(BUILT_IN)
    while new := {name for name, base in classes if base in errors} - errors:
        errors |= new
    return Counter(pair for pair in classes if pair[1] in errors)


def _drawn() -> Counter[tuple[str, str]]:
    """(name, parent) of every line of the tree in the docstring of `protocol.errors`."""
    found: Counter[tuple[str, str]] = Counter()
    above: list[str] = []
    for line in (protocol.errors.__doc__ or "").splitlines():
        match = re.match(r"((?:│   |    )*)[├└]── (\w+)", line)
        if match:
            depth = len(match[1]) // 4 + 1
            del above[depth:]
            found[match[2], above[-1]] += 1
            above.append(match[2])
        elif line == "AssayError":
            above = [line]
            found[line, "Exception"] += 1
    return found


def test_the_drawn_tree_is_the_tree() -> None:
    assert _drawn() == _errors()
