"""The stages of a task at which a fault strikes. The values are the names of the stages in the titles of
cases, such as "solver, before the bid: RPC slow".
"""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """Stages, roughly in the order in which a task reaches them. No task reaches all."""

    BEFORE_THE_BID = "before the bid"
    POSTING = "posting"
    BIDDING = "bidding"
    TRAINING = "training"
    SUBMITTED = "submitted"
    DRAWN = "drawn"
    REPLAYING = "replaying"
    LOOKING = "looking"
    LOOKED_AT = "looked at"
    JURY = "on a jury"
    ACCUSED = "accused"
    COMMIT = "move: commit"
    CHALLENGE = "move: challenge"
    STEP = "move: select a step"
    CALL = "move: select a call"
    JUDGE = "move: judge"
    TRACE = "move: post a trace"
    CALL_TRACE = "move: post a call's trace"
    REVEAL = "move: reveal nodes"
    SETTLING = "settling"
    WITHDRAWING = "withdrawing"


class Who(StrEnum):
    """The party under test."""

    SUBMITTER = "submitter"
    SOLVER = "solver"
    VERIFIER = "verifier"
