"""`python -m protocol.execution.machine_check DEVICE` checks whether this machine computes the right bits.

The check runs in a separate process, so that torch's memory is freed when it ends.

The process prints one line of JSON: {"torch": "2.13.0", "device": "cpu", "name": "… EPYC …, 2 threads"}, or
an error, {"error": "SelfCheckError", "message": …}. `check_machine` starts the process and reads the line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from protocol.execution.errors import CheckLost, DeviceError
from protocol.numerics.errors import SelfCheckError

PATIENCE = 600.0
"""Seconds to wait for the check. It takes two seconds on an idle machine, and a minute if the disk is slow."""


ERRORS = {kind.__name__: kind for kind in (SelfCheckError, DeviceError)}


@dataclass(frozen=True, slots=True)
class Machine:
    """The version of torch, the device that runs steps (`cpu` or `cuda`), and its name (`device_name`)."""

    torch: str
    device: str
    name: str


def check_machine(setting: str) -> Machine:
    """Check that the CPU and the device for a setting (as in `device_of`) compute the right bits, and
    describe that device. Raises SelfCheckError, DeviceError, CheckLost.
    """
    # -P: import nothing from the current folder.
    command = [sys.executable, "-P", "-m", __name__, setting]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return _heard(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired as error:
        raise _lost(f"nothing for {PATIENCE:g} s") from error
    except (ValueError, IndexError, KeyError, TypeError) as error:
        last = done.stderr.strip().splitlines()[-1:]
        raise _lost("; ".join([f"exit code {done.returncode}", *last])) from error


def _heard(said: Mapping[str, str]) -> Machine:
    """Read the process's answer. Raises the error that the answer names, and KeyError or TypeError for a
    malformed answer.
    """
    if "error" in said:
        raise ERRORS[said["error"]](said["message"])
    return Machine(said["torch"], said["device"], said["name"])


def _lost(got: str) -> CheckLost:
    return CheckLost(
        "check of this machine's arithmetic",
        expected="an answer of the process that makes it",
        got=got,
        remedy="see whether torch can be imported and memory is free, then start again",
    )


def main(setting: str) -> None:
    """Check the device and print the answer."""
    import torch

    from protocol.execution.device import checked, device_name
    from protocol.numerics.self_check import self_check

    found: dict[str, str]
    try:
        self_check()
        device = checked(setting)
        found = {"torch": torch.__version__, "device": device.type, "name": device_name(device)}
    except tuple(ERRORS.values()) as error:
        found = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
