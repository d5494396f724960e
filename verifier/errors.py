"""Errors of the verifier. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, ExitCode


class VerifierError(AssayError):
    """Base of the verifier's own errors."""


class StateLost(VerifierError):
    """The state before a challenged segment is neither on disk nor served any more."""


class Unserved(VerifierError):
    """The solver does not serve what it has committed to, or not in time."""


class DiskFull(VerifierError):
    """So little of the disk is free that nothing more is fetched, or kept for others."""

    exit_code = ExitCode.RETRY


class TwoDigests(VerifierError):
    """This verifier has stated one digest for a seat and would now state another: its replay is not reproducible."""


class TwoReplays(VerifierError):
    """Two replays of one segment from one state ended in different states: at least one of them went wrong."""


class SaltRefused(VerifierError):
    """A salt that can serve for nothing: no such seat, an own one, or not what it attested under."""


class TooManySalts(SaltRefused):
    """More salts are offered for one seat than are kept before it is attested."""

    exit_code = ExitCode.RETRY
