"""Turns a command's errors into one clear line and one exit code."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from protocol.errors import AssayError, ExitCode, exit_code_of


@contextmanager
def reported() -> Iterator[None]:
    """Run a command inside this context. An AssayError ends the process with one line on stderr (all lines if
    the message is a list or a traceback) and the exit code of the error's class.

    An InternalError, or an error that is not an AssayError, is a defect. The line then names the file that
    keeps its traceback, and the exit code is RETRY. Ctrl-C gives INTERRUPTED. If the reader of stdout has
    closed it, the process ends with FINE and without a line.
    """
    try:
        yield
    except KeyboardInterrupt:
        _end("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has closed it. Flushing to it at exit would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(int(ExitCode.FINE))
    except Exception as error:
        code = exit_code_of(error)
        if code is not None:
            _end(str(error) or type(error).__name__, code, isinstance(error, AssayError) and error.has_lines)
        else:
            _end(f"internal error: {type(error).__name__}: {error}; details in {_kept()}", ExitCode.RETRY)


def _kept() -> str:
    """Write the current traceback to a private file. Returns its path."""
    handle, path = tempfile.mkstemp(prefix="assay-error-", suffix=".txt")
    with os.fdopen(handle, "w") as file:
        file.write(traceback.format_exc())
    return path


def _end(message: str, code: ExitCode, has_lines: bool = False) -> None:
    print(f"error: {message if has_lines else ' '.join(message.split())}", file=sys.stderr)
    sys.exit(int(code))
