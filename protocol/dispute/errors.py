"""Errors of the dispute package.

DisputeError
├── NothingToChallenge   no difference where the game stands
└── NothingToReveal      a demanded node that is in none of one's own trees
"""

from __future__ import annotations


class DisputeError(Exception):
    """Base of the errors of a game."""


class NothingToChallenge(DisputeError):
    """The solver's words equal one's own run: no move wins this game."""


class NothingToReveal(DisputeError):
    """A demanded node is in none of one's own trees: the root it was proved under is not one's own."""
