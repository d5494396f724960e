"""The check that files in a node's bucket can be read at the announced address."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.chain.client import Client
from protocol.node.home import Home
from protocol.node.serving import addresses
from solver.checks import Level, Line
from solver.errors import PublicPlaceError
from solver.reachability import reachable
from solver.settings import SolverSettings
from tests.unit.solver.test_publishing import served

MARKET = "0x" + "a" * 40


def looked(tmp_path: Path, url: str) -> Line:
    settings = SolverSettings(publish=(tmp_path / "bucket").as_uri(), url=url)
    client = cast(Client, SimpleNamespace(market=SimpleNamespace(address=MARKET)))
    return reachable(Home(tmp_path / "home"), settings, client, "0x" + "b" * 40, local=True)


def test_what_is_published_is_read_below_the_announced_address(tmp_path: Path) -> None:
    with served(tmp_path / "bucket") as address:
        line = looked(tmp_path, str(address))
    assert line.level is Level.OK
    assert line.found.endswith(addresses(str(address), MARKET, first=False)[0])
    assert not [path for path in (tmp_path / "bucket").rglob("*") if path.is_file()], "the probe is gone"


def test_another_buckets_address_is_a_problem(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with served(other) as address, pytest.raises(PublicPlaceError):
        looked(tmp_path, str(address))
