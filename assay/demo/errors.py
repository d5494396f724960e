"""Errors of the demo.

OperatorError (protocol.runtime.exits)
└── StageError       a process did not start, or ended before its part was over
"""

from __future__ import annotations

from protocol.runtime.exits import OperatorError


class StageError(OperatorError):
    """The demo could not be played."""
