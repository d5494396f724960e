"""Errors of the exchange between lanes. A lane never trains on data that raised one of them."""

from __future__ import annotations

from protocol.errors import AssayError


class ExchangeError(AssayError):
    """Invalid input to a lane, or an invalid message from another lane."""


class JobError(ExchangeError):
    """A job's folder or members file is damaged, malformed or inconsistent, or does not fit the lane that
    is to run.
    """


class MessageError(ExchangeError):
    """An announcement or message is refused: wrong form, job, round, lane, signer or content."""


class Divergence(MessageError):
    """Two lanes have announced different shared parameters."""


class Equivocation(MessageError):
    """A lane has signed two different states of one round."""
