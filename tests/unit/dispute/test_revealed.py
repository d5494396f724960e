"""What a challenger knows of the solver's trees. The tests show in which cases the challenger asks for
leaves, which leaves it keeps, and which of the revealed parts a tree takes up.
"""

from __future__ import annotations

from collections.abc import Sequence

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


class Disk:
    """Lists of leaves by root. A full disk refuses all lists."""

    def __init__(self, full: bool = False) -> None:
        self.full = full
        self.lists: dict[bytes, Sequence[bytes]] = {}

    def get(self, root: bytes, _size: int) -> Sequence[bytes] | None:
        return self.lists.get(root)

    def put(self, root: bytes, leaves: Sequence[bytes]) -> None:
        if self.full:
            raise OSError("full")
        self.lists[root] = leaves


def test_kept_leaves_are_not_asked_for_again() -> None:
    (own, theirs), disk, ask = trees(), Disk(), Asked(THEIRS)
    assert Revealed(disk).tree(theirs.root, own, ask, keep=True).data(4) == THEIRS[4]
    assert disk.lists == {theirs.root: THEIRS}
    silent, after = Asked(None), Revealed(disk)
    after.reveal(theirs.root, 5, DemandedNode(0, 5, theirs.root), theirs.descendants(0, 5))
    assert after.tree(theirs.root, own, silent, keep=True).data(4) == THEIRS[4]
    assert (ask.times, silent.times) == (1, 0)


def test_leaves_are_kept_only_where_they_are_asked_to_be_and_give_the_root() -> None:
    (own, theirs), disk = trees(), Disk()
    Revealed(disk).tree(theirs.root, own, Asked(THEIRS))
    Revealed(disk).tree(theirs.root, own, Asked(OWN), keep=True)
    assert disk.lists == {}


def test_damaged_leaves_are_asked_for_and_replaced() -> None:
    (own, theirs), disk = trees(), Disk()
    disk.lists[theirs.root] = OWN
    assert Revealed(disk).tree(theirs.root, own, Asked(None), keep=True).data(4) is None
    assert Revealed(disk).tree(theirs.root, own, Asked(THEIRS), keep=True).data(4) == THEIRS[4]
    assert disk.lists == {theirs.root: THEIRS}


def test_leaves_that_cannot_be_kept_are_not_used() -> None:
    """Leaves that the disk refuses are not used. Otherwise the challenger could make a move with them, and no
    longer have them when a later move needs them again.
    """
    (own, theirs), disk, ask = trees(), Disk(full=True), Asked(THEIRS)
    revealed = Revealed(disk)
    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            revealed.tree(theirs.root, own, ask, keep=True)
    assert ask.times == 2
    assert revealed.tree(theirs.root, own).data(4) is None
    disk.full = False
    assert revealed.tree(theirs.root, own, ask, keep=True).data(4) == THEIRS[4]
