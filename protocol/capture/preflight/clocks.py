"""Detects whether the submitter's code asks for the time while it runs.

Two traces that are a second apart do not reveal a decision that depends on the time of day. So every call of
a clock is refused, even if its result has no effect.
"""

from __future__ import annotations

import gc
import linecache
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from types import BuiltinFunctionType, FrameType
from typing import Any

from protocol.capture.errors import Problem
from protocol.capture.inputs.python_values import in_library
from protocol.capture.preflight.checks import asks_for_the_time

NAMES = (
    *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time"),
    *("process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns", "localtime"),
    *("gmtime", "asctime", "ctime", "strftime"),
)
"""Functions of the module `time` that read a clock, some of them only if no time is given. Any call of them is
refused. Some systems lack some of them.
"""
CLOCKS = frozenset({os.times, *(getattr(time, name) for name in NAMES if hasattr(time, name))})
MOMENTS = ((datetime, "now"), (datetime, "utcnow"), (date, "today"))
"""Methods that read the clock, by class and name. Subclasses inherit them. Each look-up makes a new object, so
they cannot be in `CLOCKS`.
"""


@contextmanager
def asked_clocks(found: list[Problem]) -> Iterator[None]:
    """Add a problem to `found` for each line outside torch, NumPy and Python's own library that calls a clock
    in this thread.
    """

    def watch(frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call" or not _is_clock(function):
            return
        path = frame.f_code.co_filename
        if in_library(path):
            return
        line = linecache.getline(path, frame.f_lineno).strip()
        place = f"{os.path.relpath(path)}:{frame.f_lineno}: {line}"
        problem = asks_for_the_time(function.__qualname__, place)
        if problem not in found:
            found.append(problem)

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # the garbage collector may run finalisers of other code, which may ask for the time
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def _is_clock(function: Any) -> bool:
    if not isinstance(function, BuiltinFunctionType):
        return False
    owner, name = function.__self__, function.__name__
    if isinstance(owner, type):
        return any(issubclass(owner, each) and name == method for each, method in MOMENTS)
    return function in CLOCKS
