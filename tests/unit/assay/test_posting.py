"""What `assay submit` asks before it posts, and how long it waits for verifiers."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import cast

import pytest

from assay import posting, submitting
from assay.consent import at_terminal, prompt, require_asked, require_yes
from assay.errors import NotConfirmed, TooFewVerifiers
from assay.pricing import Price
from assay.settings import AssaySettings
from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.errors import ExitCode
from protocol.node.output import Output
from tests.chain.trees import terms

CLIENT = cast(Client, SimpleNamespace(connection=SimpleNamespace(chain_id=31337)))


class Terminal(io.StringIO):
    """A terminal with prepared input."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "posts"), [("y\n", True), (" YES \n", True), ("n\n", False), ("", False)])
def test_only_a_yes_posts(
    typed: str, posts: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    require_asked(False, Output("submit", False))
    asked = terms()
    price = cast(Price, SimpleNamespace(budget=asked.budget, escrow=asked.budget + 3 * TOKEN))
    if posts:
        require_yes(at_terminal, price)
    else:
        with pytest.raises(NotConfirmed, match="nothing was sent") as refused:
            require_yes(at_terminal, price)
        assert refused.value.price is price
    output, question = capfd.readouterr()
    assert output == "", "it belongs to the result"
    assert f"a budget of {asked.budget / TOKEN:,.6g}, and 3 for audits" in question


@pytest.mark.parametrize(("typed", "posts"), [("y\n", True), ("no\n", False), ("", False)])
def test_a_prompt_says_the_price_and_asks(
    typed: str, posts: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Priced(SimpleNamespace):
        def __str__(self) -> str:
            return "what it costs"

    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert prompt(cast(Price, Priced(budget=TOKEN, escrow=2 * TOKEN))) is posts
    assert capsys.readouterr().out.startswith("what it costs\nPost it? 2 tokens are locked")


@pytest.mark.parametrize("stdin", [io.StringIO("y\n"), None], ids=["a pipe", "none"])
def test_without_a_terminal_nobody_is_asked(
    stdin: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(NotConfirmed, match="pass --yes") as refused:
        require_asked(False, Output("submit", False))
    assert refused.value.exit_code is ExitCode.HOPELESS
    require_asked(True, Output("submit", False))


def test_a_program_that_reads_json_has_to_say_yes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    with pytest.raises(NotConfirmed, match="got --json"):
        require_asked(False, Output("submit", True))


def test_the_wait_for_verifiers_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    time = [0.0]

    def sleep(seconds: float) -> None:
        time[0] += seconds

    def none_yet(*_: object) -> None:
        raise TooFewVerifiers("verifiers", expected="at least 3", got="1", remedy="wait")

    clock = SimpleNamespace(monotonic=lambda: time[0], sleep=sleep)
    monkeypatch.setattr(posting, "time", clock)
    monkeypatch.setattr(submitting, "require_verifiers", none_yet)
    settings = AssaySettings(patience=100)
    with pytest.raises(TooFewVerifiers):
        posting._await_verifiers(Output("submit", False), settings, CLIENT, terms())
    assert 100 < time[0] < 105
    said = capfd.readouterr().out.splitlines()
    assert said[0] == "waiting for verifiers, at most 1 min 40 s more: at least 3, 1 by now"
    assert len(said) == 4, "every half a minute"
