"""The operator's order outlives the node's process, and a damaged order file is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.node.home import Home
from solver.errors import OrdersError
from solver.orders import Mode, keep_mode, load_mode, orders_file


def test_what_was_told_is_found_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert load_mode(home) is Mode.WORKING
    for mode in Mode:
        keep_mode(home, mode)
        assert load_mode(home) is mode


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b"\xff", b" " * 10**6),
        *(b'{"version": 1, "mode": "asleep"}', b'{"version": 1, "mode": ["paused"]}', b'{"version": 1}'),
        *(b'{"mode": "paused"}', b'{"version": 2, "mode": "paused"}', b'{"version": true, "mode": "paused"}'),
    ],
)
def test_a_damaged_file_is_refused_and_an_order_mends_it(tmp_path: Path, text: bytes) -> None:
    home = Home(tmp_path)
    orders_file(home).write_bytes(text)
    with pytest.raises(OrdersError, match=r"delete the file, or say `solver pause`"):
        load_mode(home)
    keep_mode(home, Mode.PAUSED)
    assert load_mode(home) is Mode.PAUSED


def test_an_order_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    home = Home(tmp_path)
    keep_mode(home, Mode.PAUSED)
    orders_file(home).unlink()
    orders_file(home).mkdir()  # no file can replace a folder, even for root
    with pytest.raises(OrdersError, match="see to the disk"):
        keep_mode(home, Mode.WORKING)
    assert [path.name for path in orders_file(home).parent.iterdir()] == ["orders.json"]
