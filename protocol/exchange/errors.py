"""Errors of the exchange between lanes. Data that raises one of them is never trained on."""

from __future__ import annotations

from protocol.errors import AssayError


class ExchangeError(AssayError):
    """Invalid input to a lane, or an invalid message from another lane."""


class JobError(ExchangeError):
    """A job's folder or members file that is damaged, malformed or inconsistent."""


class MessageError(ExchangeError):
    """A refused announcement or message: wrong form, job, round, lane, signer or content."""


class Equivocation(MessageError):
    """A lane has signed two different states of one round."""
