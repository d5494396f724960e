"""A second version of the arithmetic, for tests. It differs from the first only in its number, which is 2;
its arbiter reports this number too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from protocol.chain import abi
from protocol.chain.accounts import open_account
from protocol.chain.deploy import deploy
from protocol.chain.parameters import TOKEN
from protocol.chain.transactions import Sender
from protocol.execution.device import EXECUTORS
from protocol.tasks.arithmetics import ARBITERS
from scripts.contract_data import COMPILED, artifact, format
from tests.chain.solver_stage import PARAMETERS, QUICK, Stage

SECOND = 2
ARBITER = "NextArbiter"


def register() -> None:
    """Register the second version in this process, as a release that computes both would."""
    ARBITERS[SECOND], EXECUTORS[SECOND] = ARBITER, EXECUTORS[1]


@contextmanager
def computed() -> Iterator[None]:
    """In the context, this process computes versions 1 and 2 of the arithmetic and has their contracts."""
    read = abi._read

    def read_both(name: str) -> Any:
        return format(artifact(COMPILED, ARBITER)) if name == ARBITER else read(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ARBITERS, SECOND, ARBITER)
        patch.setitem(EXECUTORS, SECOND, EXECUTORS[1])
        patch.setattr(abi, "_read", read_both)
        yield


class Later(Stage):
    """Contracts of the second version on a stage's chain, with the same token, home folder and submitter. Use
    only inside `computed`. Unlike on other stages, the submitter is not registered as a verifier.
    """

    def __init__(self, scene: Stage) -> None:
        self.devnet, self.relay, self.url, self.home = scene.devnet, scene.relay, scene.url, scene.home
        self.bundles = scene.bundles.with_name("submitted-later")
        token = scene.deployment.addresses.token
        with Sender(scene.devnet.connection, open_account("dev:9", scene.devnet.chain_id), QUICK) as sender:
            self.deployment = deploy(sender, PARAMETERS, token, "later", arithmetic=SECOND)
        self.submitter = scene.submitter.for_deployment(self.deployment)
        self.submitter.fund(10_000 * TOKEN)
