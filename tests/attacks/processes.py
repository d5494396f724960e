"""Solvers and verifiers as separate processes: started as an operator would, and observed only from outside.

If the variable `ASSAY_PARTIES` names another checkout of this repository, with its own `.venv`, the processes
run from there. So one can show that a scenario fails on the commit before its fix. That checkout needs this
one's `tests/adversaries`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any, Final, Literal, Self

import httpx
from prometheus_client.parser import text_string_to_metric_families

from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.errors import ExitCode
from protocol.node.home import VARIABLE, Home
from tests.chain.solver_stage import Stage

OTHER: Final = os.environ.get("ASSAY_PARTIES")
ROOT: Final = Path(OTHER).absolute() if OTHER else Path(__file__).parents[2]
PROGRAMS: Final = ROOT / ".venv/bin" if OTHER else Path(sys.executable).parent
GRACE = 2.0
"""Time limit, in seconds, for a process to end once a scenario is over and has asked it to. After that it is
killed.
"""
PATIENCE = 60.0
"""Seconds after which a wait in a scenario fails."""
STARTING = 180.0
"""Seconds that a party may take to start. It needs about two seconds of processor time, but takes longer on a
busy machine.
"""

Kind = Literal["solver", "verifier"]
COMMANDS: Final[dict[Kind, list[str]]] = {
    "solver": ["run", "--port", "0"],
    "verifier": ["watch", "--port", "0"],
}
ACCOUNTS: Final[dict[Kind, int]] = {"solver": 1, "verifier": 2}
"""Index of the development key of each kind of party."""


class Process:
    """A process with its own home folder. It ends when the context ends. `lines` are the lines of its log so far."""

    def __init__(self, command: Sequence[str], home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.lines: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [str(PROGRAMS / command[0]), *command[1:]],
            cwd=ROOT,
            env={**os.environ, VARIABLE: str(home)},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        said = "\n".join(map(str, self.lines[-20:]))
        return f"{self._process.args!r}, exit code {self.ended}, said at last\n{said}"

    @property
    def ended(self) -> int | None:
        """The process's exit code; None while it runs."""
        return self._process.poll()

    def join(self, seconds: float = PATIENCE) -> int:
        """Wait until the process ends; returns its exit code. Fails after `seconds`."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs: {self}") from None

    def until(self, event: str, seconds: float = PATIENCE, **fields: object) -> dict[str, Any]:
        """Wait for a log line with this event and these fields; returns the first such line, which may be
        logged already. Fails after `seconds`, or if the process ends without such a line.
        """
        wanted = {"event": event, **fields}
        deadline = monotonic() + seconds
        while True:
            more = self._reader.is_alive() and monotonic() < deadline
            for line in list(self.lines):
                if wanted.items() <= line.items():
                    return line
            assert more, f"no line {wanted} of {self}"
            sleep(0.02)

    def close(self) -> None:
        """Ask the process to end. If it has not ended after `GRACE` seconds, kill it."""
        self._process.terminate()
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self.lines.append(json.loads(line) if line.startswith("{") else {"event": line.rstrip()})


class Party(Process):
    """`solver run` or `verifier watch` as a process on a stage. `settings` go into its config.toml, `flags`
    are appended to its command.

    If `adversary` is given, the process runs that party of `tests.adversaries` instead. Entering the context
    waits until the party is ready: a solver then has its stake and endpoint on the chain; a verifier is
    registered, unless its stake is 0.
    """

    def __init__(
        self, scene: Stage, kind: Kind, *flags: str, adversary: str | None = None, **settings: object
    ) -> None:
        account = ACCOUNTS[kind]
        scene.client(f"dev:{account}").close()  # gives it tokens
        self.address = development_account(account, DEVELOPMENT_CHAIN).address
        home = Home(scene.home.root.parent / kind)
        home.root.mkdir()
        allowed = [scene.bundles.parent.as_uri()]
        chosen = {"poll": 0.05, "bundles": allowed, "relays": [scene.relay], **settings}
        lines = [f"{name} = {json.dumps(value)}" for name, value in chosen.items()]  # same in TOML as in JSON
        home.config.write_text("\n".join([f"[{kind}]", *lines, ""]))
        command = [kind, *COMMANDS[kind]]
        if adversary is not None:
            command = ["python", "-m", "tests.adversaries", adversary, *COMMANDS[kind][1:]]
        command += ["--rpc", scene.url, "--deployment", str(scene.home.deployment(DEVELOPMENT_CHAIN))]
        command += ["--dev-account", str(account), "--log-json", *flags]
        super().__init__(command, home.root)

    def __enter__(self) -> Self:
        try:
            self.until("ready", STARTING)
        except BaseException:
            self.close()
            raise
        return self


def until(what: Callable[[], bool], *parties: Process, seconds: float = PATIENCE) -> None:
    """Wait until `what` holds. Fails after `seconds`, or if a party ends with an error."""
    deadline = monotonic() + seconds
    while True:
        for party in parties:
            assert party.ended in (None, ExitCode.FINE), party
        if what():
            return
        assert monotonic() < deadline, "\n".join(["it did not come about", *map(str, parties)])
        sleep(0.05)


def metric(party: Process, name: str, **labels: str) -> float:
    """The sum of a counter over all its samples with these labels, from the party's metrics server."""
    url = party.until("monitoring")["url"]
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics", timeout=PATIENCE).text)
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())
