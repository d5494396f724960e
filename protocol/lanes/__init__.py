"""Lanes: several machines train one model and exchange compressed messages instead of gradients.

A job has W lanes. A lane's round is three programs: *absorb* reads all lanes' last messages, *inner* is a
training step that runs H times, and *emit* makes the lane's next message. There is no coordinator: every lane
absorbs for itself and gets the same bits.

    splitting    splits a captured step into the three programs, which share one state
    membership   which lane trains and counts in which round
    oracle       runs a whole job in one process: a network of lanes must give the same bits
    schedule     estimates when a job ends, from its width, inner steps and density
"""

from __future__ import annotations

from protocol.lanes.errors import LanesError, MembershipError, ScheduleError
from protocol.lanes.membership import Membership, Part
from protocol.lanes.oracle import Job, Round
from protocol.lanes.splitting import Lanes, lanes, seeds

__all__ = [
    "Job",
    "Lanes",
    "LanesError",
    "Membership",
    "MembershipError",
    "Part",
    "Round",
    "ScheduleError",
    "lanes",
    "seeds",
]
