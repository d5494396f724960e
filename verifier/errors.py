"""Errors of the verifier. All are the operator's: one line that says what was expected, what came and what to do.

OperatorError (protocol.node.exits)
└── VerifierError
    ├── StateLost         a state that a challenge needs is gone
    ├── TwoRoots          a second, different root for a duty that was attested already
    └── NotEnoughTokens   the stake or a bond cannot be locked
"""

from __future__ import annotations

from protocol.node.exits import OperatorError


class VerifierError(OperatorError):
    """Base of the verifier's own errors."""


class StateLost(VerifierError):
    """The state before an accused segment is neither on disk nor served any more."""


class TwoRoots(VerifierError):
    """This verifier has stated one root for a duty and would now state another: its own replay is not reproducible."""


class NotEnoughTokens(VerifierError):
    """The account holds fewer tokens than have to be locked."""
