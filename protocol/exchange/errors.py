"""What goes wrong between lanes. Nothing is trained on what raises one of these."""

from __future__ import annotations

from protocol.errors import AssayError


class ExchangeError(AssayError):
    """Something that lanes of a job say to each other, or are given, does not fit."""


class JobError(ExchangeError):
    """A job's folder, or a file of its members, that is damaged or does not have its form."""


class MessageError(ExchangeError):
    """An announcement or message that is refused: of another form, job, round or lane, or signed by another account."""


class Equivocation(MessageError):
    """A lane has signed two different states of one round."""
