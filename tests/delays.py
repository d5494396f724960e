"""`--delays=main` or `--delays=others`: now and then, a request to a chain's node is made up to `LONGEST`
seconds late. With `main`, it is a request of the tests' own thread; with `others`, one of any other thread.

A test that fails only with delays relies on the time, or on which of two threads is first (CONTRIBUTING.md,
"Tests and time").
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from random import Random
from time import sleep
from typing import Final, ParamSpec, TypeVar

import pytest

SHARE: Final = 0.02
"""The share of requests that are late."""
LONGEST: Final = 2.0

P = ParamSpec("P")
T = TypeVar("T")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--delays",
        choices=("main", "others"),
        help="make requests of the main thread, or of all others, late",
    )


def pytest_configure(config: pytest.Config) -> None:
    late = config.getoption("--delays")
    if late is not None:
        from protocol.chain.rpc import Nodes

        for name in ("ask", "ask_all", "broadcast"):
            setattr(Nodes, name, delayed(getattr(Nodes, name), main=late == "main"))


def delayed(function: Callable[P, T], *, main: bool) -> Callable[P, T]:
    """The function; some calls of the main thread, or with `main` False of any other thread, wait first."""
    random = Random()

    @wraps(function)
    def late(*args: P.args, **kwargs: P.kwargs) -> T:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main is main and random.random() < SHARE:
            sleep(LONGEST * random.random())
        return function(*args, **kwargs)

    return late
