"""Errors of the demo.

OperatorError (protocol.node.exits)
└── StageError       a process did not start, or ended before its part was over
"""

from __future__ import annotations

from protocol.node.exits import OperatorError


class StageError(OperatorError):
    """The demo could not be played."""
