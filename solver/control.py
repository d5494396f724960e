"""The control socket of a running node. Each connection carries one question and one answer, each a line of
JSON.

It is a Unix socket in the home folder that only its owner can open (mode 0600); the client must be the same
user or root. The node holds a lock file while it runs. The lock lets the node replace a socket that a killed
node left, and keeps a second node of the home folder from starting.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from protocol.errors import AssayError, ExitCode, exit_code_of
from protocol.node.format_versions import is_version
from protocol.node.home import Home, HomeError
from protocol.node.logs import get
from solver.errors import AnotherNode, ControlError, NotRunning

VERSION: Final = 1
MAX_QUESTION: Final = 4_096
"""Limit on the bytes of a question. Our commands' questions have a few dozen."""
MAX_ANSWER: Final = 1 << 22
SECONDS: Final = 5.0
"""Seconds for a question to arrive, and for an answer to be taken."""
ANSWER_SECONDS: Final = 60.0
"""Seconds that the client waits for an answer. For some answers the node must first update its ledger from
the chain.
"""
LOCK_SECONDS: Final = 2.0
"""Seconds to wait for the lock, because a command may hold it for a moment."""
AT_ONCE: Final = 8
"""Limit on simultaneous connections; further ones are closed."""

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Control:
    """A context manager that serves the control socket. Its threads call `answer`. Raises AnotherNode,
    ControlError, HomeError.
    """

    def __init__(self, home: Home, answer: Answer) -> None:
        self._answer = answer
        self._path = socket_path(home)
        self._closed = threading.Event()
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._log = get("solver.control")
        with ExitStack() as opened:
            opened.enter_context(_locked_file(home, LOCK_SECONDS))
            self._socket = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            os.fchmod(self._socket.fileno(), 0o600)  # before it has a name: it is never open to others
            try:
                self._path.unlink(missing_ok=True)
                with _short(self._path) as name:
                    self._socket.bind(name)
                self._path.chmod(0o600)
                self._socket.listen(AT_ONCE)
            except OSError as error:
                raise ControlError(
                    f"control socket {self._path}",
                    expected="to be opened",
                    got=error.strerror,
                    remedy="see to the home folder",
                ) from error
            self._opened = opened.pop_all()
        self._thread = threading.Thread(target=self._serve, name="solver-control", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        with suppress(OSError):  # wakes accept
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(SECONDS)
        self._opened.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if self._closed.is_set():
                    return
                self._log.warning("control socket", error=str(error))  # such as too many open files
                self._closed.wait(1)
                continue
            if not self._places.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._one, args=(connection,), name="solver-asked", daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        try:
            with connection:
                if not _is_own(connection):
                    return
                line = _line(connection, MAX_QUESTION, SECONDS)
                connection.settimeout(SECONDS)
                connection.sendall(json.dumps(self._answered(line)).encode() + b"\n")
        except OSError as error:  # the client has disconnected, or takes too long
            self._log.debug("a question was given up", error=str(error))
        finally:
            self._places.release()

    def _answered(self, line: bytes | None) -> dict[str, Any]:
        try:
            question = json.loads(line) if line is not None else None
            if not isinstance(question, dict) or not is_version(question.get("version"), VERSION):
                raise ControlError(
                    "a question", expected=f"a line of JSON of version {VERSION}", got=_shown(line)
                )
            return {"version": VERSION, "data": dict(self._answer(question))}
        except (ValueError, RecursionError):
            error: AssayError = ControlError("a question", expected="a line of JSON", got=_shown(line))
        except AssayError as failure:
            error = failure
        except Exception as failure:  # a defect; the node continues
            self._log.warning("a question was not answered", exc_info=failure)
            error = ControlError(f"internal error: {type(failure).__name__}; the node's log has it")
        return {
            "version": VERSION,
            "error": str(error),
            "exit_code": int(exit_code_of(error) or ExitCode.RETRY),
        }


def ask(home: Home, do: str, **about: object) -> dict[str, Any]:
    """Send the running node of a home folder the question `do`, such as "status", and return the data of
    its answer. Raises NotRunning, ControlError, HomeError.
    """
    path = socket_path(home)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(ANSWER_SECONDS)
        try:
            with _short(path) as name:
                asking.connect(name)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise NotRunning(
                f"home folder {home.root}",
                expected="a running node",
                got="none",
                remedy="start `solver run`, or name the node's --home",
            ) from error
        except OSError as error:
            raise ControlError(
                f"control socket {path}", expected="to be opened", got=error.strerror
            ) from error
        if not _is_own(asking):
            raise ControlError(f"control socket {path}", expected="a node of this user", got="another user's")
        try:
            asking.sendall(json.dumps({"version": VERSION, "do": do, **about}).encode() + b"\n")
            line = _line(asking, MAX_ANSWER, ANSWER_SECONDS)
            answer = json.loads(line) if line is not None else None
        except (OSError, ValueError) as error:
            raise ControlError(
                f"control socket {path}", expected="an answer", got=error, remedy="ask again"
            ) from error
    if not isinstance(answer, dict) or not is_version(answer.get("version"), VERSION):
        raise ControlError(
            f"control socket {path}",
            expected=f"an answer of version {VERSION}",
            got=_shown(line),
            remedy="ask again; else use the release that the node runs",
        )
    if "error" in answer:
        raise ControlError(str(answer["error"]))
    data: dict[str, Any] = answer["data"]
    return data


def require_alone(home: Home) -> None:
    """Raise AnotherNode if a node of the home folder runs, and HomeError if this user may not write its lock file."""
    _locked_file(home, LOCK_SECONDS).close()


def is_running(home: Home) -> bool:
    """Whether a node of the home folder runs, even if it does not answer yet, or no longer answers. Raises
    HomeError.
    """
    try:
        _locked_file(home).close()
    except AnotherNode:
        return True
    return False


def socket_path(home: Home) -> Path:
    """The socket of the home folder's node."""
    return home.folder("solver") / "control.sock"


def _locked_file(home: Home, seconds: float = 0.0) -> IO[str]:
    """The lock file, locked until it is closed. Raises AnotherNode if the lock cannot be taken within
    `seconds`, and HomeError if this user may not write the file.
    """
    path = home.folder("solver") / "control.lock"
    try:
        file = path.open("a")
    except PermissionError as error:
        raise HomeError(path.parent, f"no right to write {path}") from error
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() < until:
                time.sleep(0.05)
                continue
            file.close()
            raise AnotherNode(
                f"home folder {home.root}",
                expected="one node at a time",
                got=f"a lock on {path}",
                remedy="stop the other node, or use another --home",
            ) from error
        return file


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A short path to a socket. The kernel allows 107 bytes, and the path in a home folder may be longer."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}" if len(os.fsencode(path)) > 100 else str(path)
    finally:
        os.close(folder)


def _is_own(connection: socket.socket) -> bool:
    """Whether the peer is a process of this user, or of root."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return user in (os.geteuid(), 0)


def _line(connection: socket.socket, most: int, seconds: float) -> bytes | None:
    """The first line that a connection sends; None if the line has more than `most` bytes, or if the
    connection ends before the line does. Raises TimeoutError after `seconds`, and OSError.
    """
    read, until = bytearray(), time.monotonic() + seconds
    while len(read) <= most:
        connection.settimeout(max(0.001, until - time.monotonic()))
        data = connection.recv(min(1 << 16, most + 1 - len(read)))
        if not data:
            return None
        read += data
        if b"\n" in data:
            return bytes(read).partition(b"\n")[0]
    return None


def _shown(line: bytes | None) -> str:
    return "none" if line is None else repr(line[:80])
