"""What a challenger knows of the solver's trees: when it asks for leaves, and which reveals a tree gets."""

from __future__ import annotations

import pytest

from protocol.commitments import Tree, step_tree
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import DemandedNode

OWN, THEIRS = ([bytes([number, wrong]) * 16 for number in range(5)] for wrong in (0, 1))


class Asked:
    """Answers with these leaves, and counts the requests."""

    def __init__(self, leaves: list[bytes] | None) -> None:
        self.leaves, self.times = leaves, 0

    def __call__(self) -> list[bytes] | None:
        self.times += 1
        return self.leaves


def trees() -> tuple[Tree, Tree]:
    return step_tree(OWN), step_tree(THEIRS)


@pytest.mark.parametrize("leaves", [THEIRS, OWN, None], ids=["true leaves", "false leaves", "no answer"])
def test_leaves_are_asked_for_once(leaves: list[bytes] | None) -> None:
    (own, theirs), revealed, ask = trees(), Revealed(), Asked(leaves)
    for _ in range(3):
        tree = revealed.tree(theirs.root, own, ask)
        assert tree.data(4) == (THEIRS[4] if leaves is THEIRS else None)
    assert ask.times == 1


def test_nothing_is_asked_where_the_roots_are_equal_or_nobody_can_be_asked() -> None:
    (own, theirs), revealed, ask = trees(), Revealed(), Asked(OWN)
    assert revealed.tree(own.root, own, ask).first_difference() is None
    assert ask.times == 0
    assert revealed.tree(theirs.root, own).first_difference() == (0, 5)


def test_reveals_are_taken_in_order_and_replace_a_request() -> None:
    (own, theirs), revealed, ask = trees(), Revealed(), Asked(THEIRS)
    top, last = DemandedNode(0, 5, theirs.root), DemandedNode(4, 1, theirs.node(4, 1))
    revealed.reveal(theirs.root, 5, top, theirs.descendants(0, 5))
    tree = revealed.tree(theirs.root, own, ask)
    assert tree.first_difference() == (0, 1)
    assert tree.data(4) is None
    revealed.reveal(theirs.root, 5, last, THEIRS[4])
    assert revealed.tree(theirs.root, own, ask).data(4) == THEIRS[4]
    assert ask.times == 0
