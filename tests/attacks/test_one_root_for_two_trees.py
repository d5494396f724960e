"""A solver that posts the root of its step tree (or of the caller's trace) as the root of a trace too.

The solver chooses the 32 bytes of a claim, so nothing on-chain forbids this. Nobody can open such a trace, so
the solver loses. But the challenger must not confuse the two trees and demand nodes that the trace does not
have.
"""

from __future__ import annotations

from hashlib import sha256

from protocol.commitments import step_tree, trace_tree
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import DemandedNode


def roots(what: str, count: int) -> list[bytes]:
    return [sha256(f"{what} {k}".encode()).digest() for k in range(count)]


OWN_STEPS = step_tree(roots("own step", 5))
CLAIMED_STEPS = roots("claimed step", 5)
CLAIMED = step_tree(CLAIMED_STEPS)


def test_a_trace_with_the_step_tree_s_root_is_a_tree_of_its_own() -> None:
    revealed = Revealed()
    assert revealed.tree(CLAIMED.root, OWN_STEPS, lambda: CLAIMED_STEPS).first_difference() == (0, 1)
    asked: list[int] = []
    trace = revealed.tree(CLAIMED.root, trace_tree(roots("value", 7)), lambda: asked.append(7))
    assert asked == [7]
    assert trace.size == 7
    assert trace.first_difference() == (0, 7)


def test_what_was_revealed_of_one_tree_is_not_taken_for_the_other() -> None:
    revealed = Revealed()
    revealed.reveal(CLAIMED.root, 5, DemandedNode(0, 5, CLAIMED.root), CLAIMED.descendants(0, 5))
    assert revealed.tree(CLAIMED.root, trace_tree(roots("value", 7))).first_difference() == (0, 7)
    assert revealed.tree(CLAIMED.root, OWN_STEPS).first_difference() == (0, 1)


def test_equal_sizes_are_compared_with_their_own_values() -> None:
    """The root of a step tree is also posted as the root of a trace; both trees have five leaves."""
    revealed = Revealed()
    own = [*CLAIMED_STEPS[:3], *roots("callee", 2)]
    assert revealed.tree(CLAIMED.root, OWN_STEPS, lambda: CLAIMED_STEPS).first_difference() == (0, 1)
    assert revealed.tree(CLAIMED.root, trace_tree(own), lambda: CLAIMED_STEPS).first_difference() == (3, 1)
