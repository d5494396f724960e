"""Errors of the dispute package. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import InternalError


class DisputeError(InternalError):
    """Base of the errors of a game."""


class NothingToChallenge(DisputeError):
    """The solver's claims equal the challenger's run, so no move wins this game."""


class NothingToReveal(DisputeError):
    """A demanded node is in none of our own trees: the root it was proved under is not our own."""
