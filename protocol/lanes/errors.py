"""What goes wrong with lanes, before anything is trained on it."""

from __future__ import annotations

from protocol.errors import AssayError


class LanesError(AssayError):
    """A captured step, or numbers of a job, that lanes cannot be made of."""


class MembershipError(LanesError):
    """A table of who counts in which round that contradicts itself or does not fit the job."""


class ScheduleError(LanesError):
    """Links, speeds or widths of lanes that no schedule can be made of."""
