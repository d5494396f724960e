"""Exit codes, and how errors become one clear line and one of them.

0 fine · 1 a restart may help · 2 it will not (wrong input, wrong chain, missing balance) · 3 fraud was found
or one's own stake was slashed · 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's end means to the script or supervisor that started it."""

    FINE = 0
    RETRY = 1
    HOPELESS = 2
    FRAUD = 3
    INTERRUPTED = 130


class OperatorError(Exception):
    """An error that the operator can act on: its message says what was expected, what came and what to do.

    Errors of the libraries below need not derive from it: `reported` is told which of them are the
    operator's.
    """

    exit_code = ExitCode.HOPELESS


class Retryable(OperatorError):
    """The same command may work later: a node that does not answer, a port still in use."""

    exit_code = ExitCode.RETRY


class StakeSlashed(OperatorError):
    """The chain has slashed the operator's own stake."""

    exit_code = ExitCode.FRAUD


Known = Callable[[BaseException], ExitCode | None]


def no_others(_error: BaseException) -> ExitCode | None:
    """No error outside OperatorError is the operator's."""
    return None


@contextmanager
def reported(known: Known = no_others) -> Iterator[None]:
    """Run a command: an operator's error ends in one line on stderr and its exit code, never in a traceback.

    `known` maps further errors to a code, or None. A defect keeps its traceback in a file that the line
    names.
    """
    try:
        yield
    except KeyboardInterrupt:
        _end("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has seen enough, such as `head`; nothing may be flushed to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(int(ExitCode.FINE))
    except OperatorError as error:
        _end(str(error), error.exit_code)
    except Exception as error:
        code = known(error)
        if code is not None:
            _end(str(error) or type(error).__name__, code)
        else:
            _end(f"internal error: {type(error).__name__}: {error}; details in {_kept()}", ExitCode.RETRY)


def _kept() -> str:
    """Write the current traceback to a private file; its path."""
    handle, path = tempfile.mkstemp(prefix="assay-error-", suffix=".txt")
    with os.fdopen(handle, "w") as file:
        file.write(traceback.format_exc())
    return path


def _end(message: str, code: ExitCode) -> None:
    line = " ".join(message.split())
    print(f"error: {line}", file=sys.stderr)
    sys.exit(int(code))
