"""Errors of lanes. Nearly all are raised before any training."""

from __future__ import annotations

from protocol.errors import AssayError


class LanesError(AssayError):
    """A captured step that cannot be split into lanes, or invalid numbers of a job."""


class MembershipError(LanesError):
    """A membership table that contradicts itself or does not fit the job."""


class ScheduleError(LanesError):
    """Links, speeds or widths of lanes that give no schedule."""
