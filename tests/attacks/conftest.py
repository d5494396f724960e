"""One anvil with its contracts for each file of attacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chain.arena import Arena, arena


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Submitter, solver and challenger with plenty of tokens, and no other task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(tmp_path_factory.mktemp("home")))
        with arena() as made:
            yield made
