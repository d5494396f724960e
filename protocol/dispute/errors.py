"""Errors of the dispute package. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import InternalError


class DisputeError(InternalError):
    """Base of all errors raised by `protocol.dispute`."""


class NothingToChallenge(DisputeError):
    """No move wins this game: either the solver's claims equal the challenger's run, or that run lacks the
    checkpoints that must be compared.
    """


class NothingToReveal(DisputeError):
    """The demanded node is in none of our own trees. It was proved under a root that is not ours."""
