"""Lanes: several machines train one model, and exchange compressed messages in place of gradients.

A job is W lanes, and a round of a lane is *absorb* (the others' last messages), H *inner* steps, *emit* (its own next
message), all of it programs. Nobody coordinates: every lane absorbs for itself, with the same bits.

    splitting    a captured step as the three programs, over one state
    membership   which lane trains and counts in which round
    oracle       a whole job in one process: what a network of lanes must give, bit for bit
    schedule     when a job ends, by its width, inner steps and density: arithmetic
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
