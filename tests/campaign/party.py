"""The party under test: the operator's command as a process, and a supervisor that does no more than systemd
would.

The supervisor restarts a process that was killed by a signal or exited with code 1 (a restart may help).
If a command that a person typed fails with code 2, the person reads the error and types the command again.
After any other failure a person must step in, and `Party.mind` raises NeedsHand.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from examples.demo.preloaded import Forked
from protocol.errors import ExitCode
from protocol.node.home import VARIABLE
from tests.campaign.disks import ROOT, Disk
from tests.forked import ONE_THREAD, start
from tests.unit.solver import killing

RESTART_SECONDS: Final = 0.5
"""Delay between an exit and the restart, like a supervisor's."""
LINKED: Final = "LD_PRELOAD"
"""The variable that preloads libraries. It has no effect on a forked process, which is linked already."""
SHOWN: Final = 12
"""How many of the last log lines a failure's message shows."""


class NeedsHand(AssertionError):
    """The party has exited, and a restart does not help. `code` is its exit code, `said` the last line of its
    log.
    """

    def __init__(self, party: Party, code: int) -> None:
        self.code = code
        self.said = party.last_words
        super().__init__(f"exit code {code}: {self.said}")


class Party:
    """A command, which is started at once. Its first word is a module with a function `main`; its home folder
    is on `disk`. The command is either `typed` by a person or a supervised service. `environment` adds to
    this process's variables. Each step, of training or of a replay, takes `dawdle` more seconds.
    """

    def __init__(
        self,
        command: Sequence[str],
        disk: Disk,
        log: Path,
        environment: Mapping[str, str] | None = None,
        typed: bool = False,
        dawdle: float = 0.0,
    ) -> None:
        self.disk = disk
        self.starts = 0
        self.ended: int | None = None
        """0 once the command has succeeded and so needs no restart; None until then."""
        self.needed_hand = ""
        """The last line of the log when the person last had to type the command again; empty if that was
        never necessary.
        """
        self._typed = typed
        self._command = list(command)
        self._dawdle = dawdle
        self._environment = {**(environment or {}), VARIABLE: str(disk.folder)}
        self._log = log
        self._read = 0
        self._lines: list[dict[str, Any]] = []
        self._since: float | None = None
        self._pauses = 0
        self._process = self._start()

    @property
    def pid(self) -> int:
        """Process id of the running process, or of the last one."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process exists, suspended or not."""
        return self._process.poll() is None

    @property
    def last_words(self) -> str:
        """The last line of the command's log."""
        lines = self._log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "nothing"

    def lines(self) -> list[dict[str, Any]]:
        """All lines that the command has logged so far, over all starts; a line that is not JSON becomes an
        `event`.
        """
        with self._log.open("rb") as log:
            log.seek(self._read)
            data = log.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        self._lines += [_parsed(line) for line in whole.decode(errors="replace").splitlines()]
        return self._lines

    def said(self, event: str, since: int = 0, **fields: object) -> bool:
        """Whether the command has logged this event with these fields, from log line `since` on."""
        wanted = {"event": event, **fields}
        return any(wanted.items() <= line.items() for line in self.lines()[since:])

    def mind(self) -> None:
        """If the command has failed, start it again if its supervisor or the person who typed it would do so.
        Raises NeedsHand if a restart does not help.
        """
        code = self._process.poll()
        if code is None or self.ended is not None:
            return
        if code == ExitCode.FINE:
            self.ended = code
        elif code == ExitCode.RETRY or code < 0 or (self._typed and code == ExitCode.HOPELESS):
            if code == ExitCode.HOPELESS:
                self.needed_hand = self.last_words
            self._since = self._since or monotonic()
            if monotonic() - self._since >= RESTART_SECONDS:
                self.start()
        else:
            raise NeedsHand(self, code)

    def kill(self) -> None:
        """Kill the process, as a power cut does."""
        self._process.kill()
        self._process.wait()

    def start(self) -> None:
        """Start the same command again."""
        assert not self.is_running
        self._since = None
        self._process = self._start()

    def pause(self) -> None:
        """Suspend the process until `resume` has been called as often as `pause`."""
        self._pauses += 1
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Undo one `pause`; the process runs on when all are undone. Pauses before a restart do not count."""
        self._pauses = max(0, self._pauses - 1)
        if not self._pauses:
            self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill the process if it runs."""
        if self.is_running:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
        self._process.wait()

    def report(self) -> str:
        """The end of the command line, the state of the process and its last log lines, for a failure's message."""
        state = "runs" if self.is_running else f"has ended with {self._process.poll()}"
        last = [json.dumps(line, default=str)[:600] for line in self.lines()[-SHOWN:]]
        return "\n".join([f"{' '.join(self._command[-12:])} {state}; starts: {self.starts}", *last])

    def _start(self) -> Forked | subprocess.Popen[bytes]:
        self.starts += 1
        self._pauses = 0
        module, *arguments = self._command
        late = (
            f"from tests.unit.solver import killing; killing.dawdle({self._dawdle})" if self._dawdle else ""
        )
        code = f"{late}\nfrom {module} import main\nmain()"
        whole = [sys.executable, "-c", code, *arguments]
        command = self.disk.command(whole)
        if command == whole and LINKED not in self._environment:
            before = [partial(killing.dawdle, self._dawdle)] if self._dawdle else []
            return start(module, *arguments, log=self._log, environment=self._environment, before=before)
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **ONE_THREAD, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


def _parsed(line: str) -> dict[str, Any]:
    with suppress(json.JSONDecodeError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {"event": line}
