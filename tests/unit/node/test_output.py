"""Prose and the JSON envelope never mix."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from protocol.node.output import Output


@dataclass
class Result:
    """Something to print."""

    root: bytes
    amount: int
    path: tuple[int, ...]


def test_json_is_one_envelope_and_prose_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output("status", as_json=True)
    output.say("one task")
    output.result(Result(b"\x01\xff", 10**18, (1, 2)))
    printed = capsys.readouterr()
    assert printed.err == "one task\n"
    assert json.loads(printed.out) == {
        "version": 1,
        "command": "status",
        "data": {"root": "0x01ff", "amount": "1000000000000000000", "path": [1, 2]},
    }


def test_without_json_there_is_only_prose(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output("status", as_json=False)
    output.say("one task")
    output.result({"task": 1})
    assert capsys.readouterr().out == "one task\n"
