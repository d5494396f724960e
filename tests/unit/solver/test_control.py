"""The control socket serves only its owner and one node, and no input to it ends the node."""

from __future__ import annotations

import gc
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from protocol.node.home import Home
from solver import control
from solver.control import AT_ONCE, SECONDS, Control, ask, is_running, socket_path
from solver.errors import AnotherNode, ControlError, NotRunning


class Node:
    """A stub node that repeats the command in its answer."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Repeat the command in the answer. The command `break` raises a defect, and `refuse` raises an
        operator's error.
        """
        self.asked.append(question)
        if question.get("do") == "break":
            raise RuntimeError("of no kind that anybody knows")
        if question.get("do") == "refuse":
            raise ControlError("no", remedy="ask for something else")
        return {"did": question.get("do")}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def node(home: Home) -> Iterator[Node]:
    made = Node()
    with Control(home, made.answer):
        yield made


def said(home: Home, data: bytes) -> bytes:
    """Everything that the socket returns for some bytes; empty if it breaks the connection."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(20)
        asking.connect(str(socket_path(home)))
        try:
            asking.sendall(data)
            return b"".join(iter(lambda: asking.recv(65_536), b""))
        except (BrokenPipeError, ConnectionResetError):
            return b""


def test_a_question_is_answered_and_an_error_is_the_askers(home: Home, node: Node) -> None:
    assert ask(home, "status") == {"did": "status"}
    with pytest.raises(ControlError, match="no; ask for something else"):
        ask(home, "refuse")
    with pytest.raises(ControlError, match="internal error: RuntimeError"):
        ask(home, "break")
    assert ask(home, "status") == {"did": "status"}, "the node goes on"
    assert [one["do"] for one in node.asked] == ["status", "refuse", "break", "status"]


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"x" * 100 + b"\n",
        b'{"version": 1}' * 3 + b"\n",
        b"[" * 4_000 + b"\n",
        b"\xff\xfe\n",
        b'{"version": 2, "do": "stop"}\n',
        b'{"version": true, "do": "stop"}\n',
        b'"status"\n',
        b"1e999\n",
    ],
    ids=["empty", "words", "three", "deep", "bytes", "later", "true", "text", "number"],
)
def test_what_is_no_question_is_said_to_be_none(home: Home, node: Node, data: bytes) -> None:
    assert b'"error": "a question: expected a line of JSON' in said(home, data)
    assert node.asked == []
    assert ask(home, "status") == {"did": "status"}


def test_a_line_without_an_end_is_read_no_further(home: Home, node: Node) -> None:
    began = time.monotonic()
    said(home, b"x" * (8 << 20))
    assert time.monotonic() - began < SECONDS, "it was not waited for"
    assert node.asked == []
    assert ask(home, "status") == {"did": "status"}


def test_whoever_says_nothing_is_given_up_and_others_are_answered_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "SECONDS", 0.2)
    node = Node()
    with Control(home, node.answer):
        silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(AT_ONCE + 2)]
        for one in silent:
            one.connect(str(socket_path(home)))
        until = time.monotonic() + 20
        while True:
            try:
                assert ask(home, "status") == {"did": "status"}
                break
            except ControlError:
                assert time.monotonic() < until
                time.sleep(0.05)
        for one in silent:
            one.close()


def test_the_socket_is_its_owners_alone(home: Home, node: Node) -> None:
    found = socket_path(home).stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert stat.S_IMODE(socket_path(home).parent.stat().st_mode) == 0o700
    assert node.asked == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_not_answered_though_the_folder_were_open() -> None:
    """All permissions on the path are open, as a careless operator might leave them."""
    folder = Path(mkdtemp())
    home, made = Home(folder), Node()
    with Control(home, made.answer):
        folder.chmod(0o777)
        socket_path(home).parent.chmod(0o777)
        socket_path(home).chmod(0o777)
        stranger = os.fork()
        if stranger == 0:
            got = b"?"
            try:
                os.setgid(65_534)
                os.setuid(65_534)
                got = said(home, b'{"version": 1, "do": "stop"}\n')
            finally:
                os._exit(0 if got == b"" else 1)
        _, code = os.waitpid(stranger, 0)
        assert (code, made.asked) == (0, [])
        assert ask(home, "status") == {"did": "status"}
    for file in (home.root / "solver").iterdir():
        file.unlink()
    (home.root / "solver").rmdir()
    home.root.rmdir()


def test_a_socket_that_a_killed_node_left_is_no_node_and_in_nobodys_way(home: Home) -> None:
    child = os.fork()
    if child == 0:  # as after kill -9: nothing is cleaned up
        Control(home, Node().answer).__enter__()
        os._exit(9)
    os.waitpid(child, 0)
    assert socket_path(home).exists()
    with pytest.raises(NotRunning, match="expected a running node, got none"):
        ask(home, "status")
    assert not is_running(home)
    with Control(home, Node().answer):
        assert ask(home, "status") == {"did": "status"}
    assert not socket_path(home).exists()


def test_two_nodes_cannot_share_a_home_folder(
    home: Home, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock holds even after unreferenced objects are garbage-collected."""
    monkeypatch.setattr(control, "LOCK_SECONDS", 0.0)
    gc.collect()
    with pytest.raises(AnotherNode, match="expected one node at a time"):
        Control(home, Node().answer)
    assert is_running(home)
    assert ask(home, "status") == {"did": "status"}, "the first one's socket is still its own"
    assert len(node.asked) == 1


def test_a_home_folder_may_have_a_longer_name_than_sockets(tmp_path: Path) -> None:
    home = Home(tmp_path / ("long" * 30) / ("longer" * 20))
    with Control(home, Node().answer):
        assert len(str(socket_path(home))) > 200
        assert ask(home, "status") == {"did": "status"}


def test_a_node_that_does_not_run_is_said_not_to(home: Home) -> None:
    with pytest.raises(NotRunning, match=r"start `solver run`"):
        ask(home, "status")
    assert not is_running(home)
