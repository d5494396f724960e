"""A development chain: the native anvil program as a child of this process, on loopback, until this process
closes it.

The chain has Prague's rules and the well-known development accounts. It makes a block every `block_time`
seconds, one per transaction, or both.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from protocol.chain.accounts import DEVELOPMENT_ACCOUNTS, DEVELOPMENT_CHAIN, MNEMONIC
from protocol.chain.connection import Connection
from protocol.chain.errors import AnvilMissing, DevnetError, PortInUse, RpcError
from protocol.node.http import hold_port

HOST: Final = "127.0.0.1"
VARIABLE: Final = "ANVIL"
READY_SECONDS: Final = 20.0
CLOSING_SECONDS: Final = 5.0
WRITING_SECONDS: Final = 120.0
"""Seconds for anvil to write its state when it is closed: enough for thousands of blocks."""
_NATIVE = Path(__file__).parents[2] / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"


def anvil_program() -> str:
    """Path of anvil: the program that `ANVIL` names, else the npm package's native program, else the one on
    PATH.

    npm's launcher is never used, because it exits 0 on failure and orphans the real process. Raises
    AnvilMissing.
    """
    chosen = os.environ.get(VARIABLE)
    for candidate in (chosen,) if chosen else (str(_NATIVE), "anvil"):
        found = shutil.which(candidate)
        if found is not None:
            return found
    raise AnvilMissing(
        "anvil",
        expected="an executable program",
        got=f"{VARIABLE}={chosen}" if chosen else f"none at {_NATIVE} or on PATH",
        remedy="run `make setup`, or install Foundry 1.7.1 and name its anvil in ANVIL",
    )


class Devnet:
    """A running anvil. `port` 0 means any free port. Anvil makes a block every `block_time` seconds, and with
    `mixed` also one per transaction. If `block_time` is None, it makes blocks only for transactions, one
    each. It keeps the states of the last `states` blocks (500 by default). With a file `state`, it continues
    the chain in that file, with the machine's clock, and writes the chain back when closed.

    Raises AnvilMissing and PortInUse. Raises DevnetError if anvil exits or the file `log` cannot be written.
    Raises RpcError if anvil does not answer.
    """

    def __init__(
        self,
        port: int = 0,
        block_time: int | None = 1,
        chain_id: int = DEVELOPMENT_CHAIN,
        log: Path | None = None,
        hardfork: str = "prague",
        states: int | None = None,
        state: Path | None = None,
        mixed: bool = False,
    ) -> None:
        program = anvil_program()
        options = ["--chain-id", str(chain_id), "--hardfork", hardfork]
        options += ["--mnemonic", MNEMONIC, "--accounts", str(DEVELOPMENT_ACCOUNTS)]
        # Transactions in the order of arrival: a development chain has no fee market.
        options += ["--order", "fifo"]
        # Otherwise anvil would write up to 3,600 states of old blocks, gigabytes, to the home folder.
        options += ["--max-persisted-states", "0"] if states is None else ["--prune-history", str(states)]
        self._patience = CLOSING_SECONDS
        if state is not None:
            options += ["--state", str(state)]
            self._patience = WRITING_SECONDS
        if block_time is not None:
            options += ["--block-time", str(block_time), *(["--mixed-mining"] if mixed else [])]
        self.chain_id = chain_id
        with hold_port(HOST) as held:  # until anvil listens
            self.port = port or int(held.getsockname()[1])
            self.url = f"http://{HOST}:{self.port}"
            self._start(program, options, log)

    @property
    def pid(self) -> int:
        """Process id of anvil."""
        return self._process.pid

    @property
    def client(self) -> str:
        """Name and version as anvil reports them, such as `anvil/v1.7.1`."""
        return str(self.connection.request("web3_clientVersion"))

    def mine(self, blocks: int = 1) -> None:
        """Make this number of blocks now."""
        self.connection.request("anvil_mine", hex(blocks), attempts=1)

    def make_blocks_every(self, seconds: int) -> None:
        """From now on make a block every `seconds`, with or without transactions. No extra block is made for
        a transaction any more.
        """
        self.connection.request("evm_setIntervalMining", seconds, attempts=1)

    def skip(self, seconds: int) -> None:
        """Advance the chain's clock by `seconds`, and make a block."""
        self.connection.request("evm_increaseTime", hex(seconds), attempts=1)
        self.mine()

    def next_block_at(self, time: int) -> None:
        """Set the next block's time, in seconds since 1970. It must be later than the newest block's."""
        self.connection.request("evm_setNextBlockTimestamp", hex(time), attempts=1)

    def wait(self) -> int:
        """Wait until anvil ends by itself. Returns its exit status."""
        return self._process.wait()

    def close(self) -> None:
        """End the anvil process that this object started."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=self._patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.connection.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, program: str, options: list[str], log: Path | None) -> None:
        """Start anvil and wait until it answers."""
        if _listens(self.port):
            raise PortInUse(
                f"port {self.port}",
                expected=f"a free port on {HOST}",
                got="another server",
                remedy="stop it, or choose another port",
            )
        try:
            self._log = (log or Path(os.devnull)).open("ab")
        except OSError as error:
            raise DevnetError(
                f"log file {log}",
                expected="a file that can be written",
                got=error.strerror or type(error).__name__,
                remedy="name another with --log",
            ) from error
        self._process = subprocess.Popen(
            [program, "--host", HOST, "--port", str(self.port), *options],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self.connection = Connection(self.url)
        try:
            self._wait_ready()
        except BaseException:
            self.close()
            raise

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            status = self._process.poll()
            if status is not None:
                raise DevnetError(
                    "anvil",
                    expected="to run",
                    got=f"exit status {status}",
                    remedy="run it by hand to see why",
                )
            try:
                self.connection.request("eth_chainId", attempts=1)
                break
            except RpcError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        # A fresh chain has only block 0: make two more, so that there are earlier blocks.
        self.connection.request("anvil_mine", "0x2", attempts=1)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0
