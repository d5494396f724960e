"""Which task a number means after a re-organisation. No note on another task of the same user is lost."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from assay import known_task
from assay.errors import AnotherTask, NotMinedAgain
from assay.known_task import KnownTask
from assay.notes import posted, remember
from protocol.chain.client import Client
from protocol.chain.views import TaskView
from protocol.node.home import Home
from protocol.tasks.task import Terms
from tests.chain.trees import terms

OURS, STRANGER = "0x" + "11" * 20, "0x" + "22" * 20
ONE, TWO, OTHER = (replace(terms(), bundle_hash=bytes([number]) * 32) for number in (1, 2, 3))


class Chain:
    """A stub chain. A test replaces `tasks`, which maps each number to the task's submitter and terms."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks: dict[int, tuple[str, Terms]] = {}
        monkeypatch.setattr(known_task, "open_numbers", lambda _client: (sorted(self.tasks), 0))
        market = SimpleNamespace(
            address="0x" + "cd" * 20,
            task_if_posted=lambda number: self._view(number) if number in self.tasks else None,
            task=self._view,
            terms=lambda number: self.tasks[number][1],
        )
        connection = SimpleNamespace(
            chain_id=31337, genesis="0x" + "ab" * 32, is_viewing=False, view=nullcontext
        )
        self.client = cast(Client, SimpleNamespace(connection=connection, market=market, address=OURS))

    def _view(self, number: int) -> TaskView:
        return cast(TaskView, SimpleNamespace(task=number, submitter=self.tasks[number][0]))


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Chain:
    return Chain(monkeypatch)


@pytest.fixture
def home(tmp_path: Path, chain: Chain) -> Home:
    """A home folder from which tasks 5 and 6 were posted."""
    made = Home(tmp_path)
    for number, noted in ((5, ONE), (6, TWO)):
        remember(made, chain.client, number, None, noted)
    return made


def number_now(chain: Chain, home: Home, number: int) -> int | None:
    """The number that `AnotherTask` names."""
    with pytest.raises(AnotherTask) as raised:
        KnownTask.meant(chain.client, home, number)
    return raised.value.number


def test_a_strangers_post_before_two_own_ones_moves_both_notes(chain: Chain, home: Home) -> None:
    chain.tasks = {5: (STRANGER, OTHER), 6: (OURS, ONE), 7: (OURS, TWO)}
    for _ in range(2):  # the old number never means the stranger's task
        assert number_now(chain, home, 5) == 6
    assert KnownTask.meant(chain.client, home, 6).terms == ONE
    assert KnownTask.meant(chain.client, home, 7).terms == TWO
    chain.tasks = {5: (OURS, ONE), 6: (OURS, TWO)}  # another re-organisation
    assert KnownTask.meant(chain.client, home, 5).terms == ONE
    assert KnownTask.meant(chain.client, home, 6).terms == TWO
    assert number_now(chain, home, 7) == 6


def test_no_note_is_replaced_while_its_task_is_not_on_the_chain(chain: Chain, home: Home) -> None:
    chain.tasks = {5: (STRANGER, OTHER), 6: (OURS, ONE)}
    assert number_now(chain, home, 5) == 6
    assert posted(home, chain.client, 6) == (OURS, TWO)
    assert KnownTask.meant(chain.client, home, 6).terms == ONE, "as was said"
    chain.tasks[7] = (OURS, TWO)
    assert number_now(chain, home, 5) == 6
    assert KnownTask.meant(chain.client, home, 6).terms == ONE
    assert KnownTask.meant(chain.client, home, 7).terms == TWO


def test_a_number_that_was_not_told_is_not_that_of_another_own_task(chain: Chain, home: Home) -> None:
    chain.tasks = {5: (STRANGER, OTHER), 6: (OURS, ONE), 7: (OURS, TWO)}
    for _ in range(2):
        assert number_now(chain, home, 6) == 7
        chain.tasks[6] = (STRANGER, OTHER)


def test_two_tasks_that_have_each_others_numbers_keep_their_notes(chain: Chain, home: Home) -> None:
    chain.tasks = {5: (OURS, TWO), 6: (OURS, ONE)}
    assert number_now(chain, home, 5) == 6
    assert KnownTask.meant(chain.client, home, 5).terms == TWO
    assert KnownTask.meant(chain.client, home, 6).terms == ONE


def test_a_number_without_a_note_means_the_task_that_has_it(chain: Chain, home: Home) -> None:
    chain.tasks = {8: (STRANGER, OTHER)}
    assert KnownTask.meant(chain.client, home, 8).submitter == STRANGER
    with pytest.raises(NotMinedAgain):
        KnownTask(5, OURS, ONE).view(chain.client, home)
    assert KnownTask.meant(chain.client, home, 5).terms == ONE, "it may be mined again"
