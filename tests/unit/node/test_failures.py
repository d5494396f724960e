"""Which exit code an error of the libraries ends a party with."""

from __future__ import annotations

import pytest

from protocol.chain.errors import ChainError, DeploymentError, RpcRefused, RpcUnavailable
from protocol.failures import known
from protocol.node.exits import ExitCode


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RpcUnavailable("http://127.0.0.1:1", OSError()), ExitCode.RETRY),
        (
            RpcRefused("block 7", "none of that number or hash"),
            ExitCode.RETRY,
        ),  # a node that is a block behind
        (RpcRefused("eth_call", "too many requests"), ExitCode.RETRY),
        (DeploymentError("deployment", expected="a file", got="none", remedy="deploy"), ExitCode.HOPELESS),
    ],
)
def test_a_node_that_does_not_answer_now_may_answer_later(error: ChainError, code: ExitCode) -> None:
    assert known(error) is code


def test_a_defect_is_nobodys_input() -> None:
    assert known(ZeroDivisionError()) is None
