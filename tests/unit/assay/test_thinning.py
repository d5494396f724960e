"""The thinning of a task's digests is taken from the task file. If the file gives none, it is the one
recommended for the task's operations and state.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from assay.deriving import Place
from assay.description import read
from assay.source import captured
from assay.submitting import prepare
from protocol.chain.parameters import DEVNET
from protocol.node.home import Home
from protocol.tasks.thinning import MOST, digesting_share, recommended_thinning

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_an_unsaid_thinning_keeps_digests_cheap(tmp_path: Path) -> None:
    prepared = prepare(captured(read(EXAMPLES / "gpt.toml")), Home(tmp_path))
    terms = prepared.terms("http://127.0.0.1", prepared.derived(Place(DEVNET)))
    work = terms.segment_steps, terms.step_operations, terms.state_bytes
    assert terms.thinning == recommended_thinning(*work) > 1
    assert digesting_share(1, *work) > MOST

    said = replace(
        prepared,
        description=prepared.description.model_copy(
            update={"terms": prepared.description.terms.model_copy(update={"thinning": 2})}
        ),
    )
    assert said.terms("http://127.0.0.1", said.derived(Place(DEVNET))).thinning == 2
