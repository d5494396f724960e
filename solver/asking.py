"""Implements `status`, `pause`, `resume`, `drain` and `stop`: asks the running node or, if no node is
running, reads and writes files.
"""

from __future__ import annotations

import time
from typing import Any, Final

from protocol.node.home import Home
from protocol.node.output import Output
from solver.control import ask, is_running
from solver.errors import NotRunning
from solver.orders import WHY, Mode, keep_mode, load_mode
from solver.status import Account, from_data, left_in

ORDERED: Final = {"pause": Mode.PAUSED, "resume": Mode.WORKING, "drain": Mode.DRAINING}


def status(home: Home, as_json: bool) -> None:
    """Print the node's status. Raises ControlError, OrdersError, HomeError."""
    output = Output("solver status", as_json)
    try:
        answer = ask(home, "status")
    except NotRunning:
        accounts, refused = left_in(home)
        mode = load_mode(home)
        output.say(f"no node runs in {home.root}; this is what the last one left")
        output.say(f"it is {mode.value} when it is started")
        for reason in refused:
            output.say(f"not read: {reason}")
        _say_accounts(output, accounts)
        output.result({"running": False, "mode": mode.value, "accounts": accounts, "not_read": refused})
        return
    accounts = [from_data(one) for one in answer["accounts"]]
    output.say(f"{answer['mode']}, process {answer['pid']}, since {answer['since']}, block {answer['block']}")
    if answer["no_bids"]:
        output.say(f"no bids: {answer['no_bids']}")
    output.say(
        f"serves {answer['url']}; device {answer['device']}; {answer['free_disk'] / 2**30:.1f} GiB of disk for a task"
    )
    _say_accounts(output, accounts)
    output.result({"running": True, **answer, "accounts": accounts})


def order(home: Home, what: str, as_json: bool, wait: bool = False) -> None:
    """Give the running node an order. If no node is running, the order is kept for the next start, except
    `stop`, which raises NotRunning. With `wait`, return when the node has ended. Raises ControlError,
    OrdersError, HomeError.
    """
    output = Output(f"solver {what}", as_json)
    try:
        answer: dict[str, Any] = ask(home, what)
    except NotRunning:
        if what == "stop":
            raise
        keep_mode(home, ORDERED[what])
        output.say(f"no node runs in {home.root}: it is {ORDERED[what].value} when it is started")
        output.result({"running": False, "mode": ORDERED[what].value})
        return
    output.say(f"{answer['mode']}, process {answer['pid']}")
    if what in ORDERED and ORDERED[what] in WHY:
        output.say(WHY[ORDERED[what]])
    while wait and is_running(home):
        time.sleep(0.5)
    output.result({"running": not wait, "mode": answer["mode"], "pid": answer["pid"]})


def _say_accounts(output: Output, accounts: list[Account]) -> None:
    for account in accounts:
        for line in account.lines():
            output.say(line)
