"""One anvil with the arbiter for each test file that uses it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chain.evm import Evm, evm


@pytest.fixture(scope="module")
def chain() -> Iterator[Evm]:
    """The arbiter's contracts on an EVM."""
    with evm() as running:
        yield running
