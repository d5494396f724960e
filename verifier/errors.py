"""Errors of the verifier. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, ExitCode


class VerifierError(AssayError):
    """Base of the verifier's own errors."""


class StateLost(VerifierError):
    """The state before a challenged segment is not on disk and is not served any more."""


class Unserved(VerifierError):
    """The solver does not serve what it committed to, or not in time."""


class DiskFull(VerifierError):
    """Too little disk space is free to fetch more data, or to keep data for others."""

    exit_code = ExitCode.RETRY


class TwoDigests(VerifierError):
    """This verifier has stated a digest for a seat and would now state another: its replay is not
    reproducible.
    """


class TwoReplays(VerifierError):
    """Two replays of one segment from one state ended in different states: at least one of them is wrong."""


class SaltRefused(VerifierError):
    """A salt is useless: it is malformed, it comes too late, or the seat that it was offered for does not
    exist, is ours, or did not attest under it.
    """


class TooManySalts(SaltRefused):
    """The number of salts kept for one seat has reached its limit, which applies until the seat's attestation
    is known.
    """

    exit_code = ExitCode.RETRY
