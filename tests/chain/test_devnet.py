"""The development chain starts, reports failures, and ends without touching other processes."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from protocol.chain.connection import Connection
from protocol.chain.devnet import Devnet
from protocol.chain.errors import AnvilMissing, DevnetError, PortInUse, RpcUnavailable

pytestmark = pytest.mark.chain


def test_it_answers_on_loopback_and_is_gone_after_closing() -> None:
    with Devnet(block_time=None) as net:
        assert net.client.startswith("anvil/")
        assert net.connection.chain_id == 31337
        pid, url = net.pid, net.url
        assert url.startswith("http://127.0.0.1:")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(RpcUnavailable, match="start the node"):
        Connection(url).request("eth_chainId", attempts=1)


def test_blocks_come_by_themselves_and_the_clock_can_be_moved() -> None:
    with Devnet(block_time=1) as net:
        before = net.connection.block()
        net.skip(100)
        assert net.connection.block().time >= before.time + 100
        number = net.connection.block().number
        while net.connection.block().number == number:
            pass


def test_old_blocks_leave_nothing_on_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with Devnet(block_time=None) as net:
        net.mine(600)  # more than it keeps in memory
        assert not list(tmp_path.rglob("*"))


def test_a_port_in_use_is_named_and_its_owner_lives_on() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port}"):
            Devnet(port=port)
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass


def test_a_missing_anvil_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL", "/nowhere/anvil")
    with pytest.raises(AnvilMissing, match=r"ANVIL=/nowhere/anvil; run `make setup`"):
        Devnet()


def test_an_anvil_that_ends_at_once_is_reported_with_its_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "anvil"
    broken.write_text("#!/bin/sh\nexit 7\n")
    broken.chmod(0o755)
    monkeypatch.setenv("ANVIL", str(broken))
    with pytest.raises(DevnetError, match="exit status 7"):
        Devnet()


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DevnetError, match=f"log file {tmp_path}/none/a.log: expected a file that can be written"
    ):
        Devnet(log=tmp_path / "none" / "a.log")
