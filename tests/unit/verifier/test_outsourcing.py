"""The digest service of outsourcing seats asks a busy solver or verifier again, for a limited time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast
from urllib.error import URLError

import pytest

from protocol.commitments.digests import Digester, seat_digest
from protocol.tasks.bundles import BundleError
from tests.adversaries import outsourcing, waiting
from tests.adversaries.outsourcing import DigestService
from tests.adversaries.waiting import until
from verifier.context import Context
from verifier.errors import Unserved
from verifier.findings import Committed, Equal

SALT = bytes([1]) * 32
DIGEST = bytes([2]) * 32


def busy(errors: Iterator[Exception]) -> Callable[..., None]:
    """A function whose calls raise one error each; after the last error, it does nothing."""

    def work(*_arguments: object) -> None:
        for error in errors:
            raise error

    return work


def test_what_is_busy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.0)
    answers: Iterator[Exception | int] = iter([URLError("refused"), 409, 202])

    def offer(*_arguments: object) -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def audit(_committed: Committed, _segment: int, digesters: list[Digester]) -> Equal:
        assert digesters == [Digester(SALT, 1)]
        return Equal((DIGEST,))

    monkeypatch.setattr(outsourcing, "offer", offer)
    ask = busy(iter([Unserved("a checkpoint"), Unserved("another")]))
    material = SimpleNamespace(
        replayer=SimpleNamespace(ask=ask, audit=audit), terms=SimpleNamespace(thinning=1)
    )
    context = SimpleNamespace(
        client=SimpleNamespace(
            market=SimpleNamespace(task=lambda _task: SimpleNamespace(root=bytes(32), size=4))
        ),
        fetch=busy(iter([BundleError("a bundle"), URLError("refused")])),
        load=lambda _task: material,
        segments=lambda _task, _seat: [2],
    )
    service = DigestService(cast(Context, context), ["http://verifier"])
    assert service.digest(1, 0, SALT) == seat_digest([DIGEST], DIGEST)


def test_patience_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    with pytest.raises(Unserved):
        until("the solver", busy(iter([Unserved("a checkpoint")])))
    with pytest.raises(AssertionError, match="a seat"):
        until("a seat", lambda: False)
