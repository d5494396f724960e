"""Python types for contract values have the same fields as the ABI, in the same order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest

from protocol.chain.abi import contract
from protocol.chain.views import (
    AuditView,
    Claim,
    GameState,
    LookView,
    Offer,
    PendingDraw,
    Registration,
    Seat,
    TaskView,
)
from protocol.commitments.opened_chunks import Place
from protocol.dispute.accusing import Evidence
from protocol.tasks.task import Terms

READ: tuple[tuple[type, str, str, list[str]], ...] = (
    (Terms, "TaskMarket", "termsOf", []),
    # The list names leading fields that are not in the struct but are the call's argument.
    (TaskView, "TaskMarket", "taskOf", ["task"]),
    (GameState, "DisputeGame", "gameOf", ["game"]),
    (Claim, "DisputeGame", "claimOf", []),
    (Registration, "AuditBoard", "registrationOf", []),
    (Seat, "AuditBoard", "seatOf", ["number"]),
    (AuditView, "AuditBoard", "auditOf", []),
    (PendingDraw, "AuditBoard", "firstDraw", []),
    (LookView, "Looks", "lookOf", []),
)


def function(name: str, of: str) -> Any:
    (found,) = (entry for entry in contract(of).abi if entry.get("name") == name)
    return found


def names(parts: Sequence[Any]) -> list[str]:
    return [re.sub(r"(?<!^)(?=[A-Z])", "_", part["name"]).lower() for part in parts]


@pytest.mark.parametrize(
    ("kind", "of", "name", "first"), READ, ids=lambda part: getattr(part, "__name__", "")
)
def test_a_view_has_the_fields_of_its_struct(kind: type, of: str, name: str, first: list[str]) -> None:
    (struct,) = function(name, of)["outputs"]
    assert [field.name for field in fields(kind)] == [*first, *names(struct["components"])]


def test_an_offer_and_an_accusation_are_taken_in_their_order() -> None:
    offer = function("register", "AuditBoard")["inputs"][1]
    assert [field.name for field in fields(Offer)] == names(offer["components"])
    *_, place, proof = function("accuse", "Looks")["inputs"]
    assert list(Place._fields) == names(place["components"])
    assert [field.name for field in fields(Evidence)] == ["place", *names(proof["components"])]
    accusation, *paths = function("answer", "Looks")["inputs"][2:]
    assert names(accusation["components"]) == ["place", "leaf", "segment_root"]
    assert names(paths) == ["chunk", "tensor", "state"]
