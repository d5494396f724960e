"""Disks for a party's home folder: this machine's disk, or one of 16 MiB that can be filled to the last byte.

The small disk is a tmpfs in its own user and mount namespace. It needs no privilege if the system lets users
create namespaces. A separate process holds the namespace, so parties on the disk may be killed and started
again.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, Protocol

ROOT: Final = Path(__file__).parents[2]
"""The working directory of the parties."""
SIZE: Final = "16m"
FILLER: Final = "filler"
BLOCK: Final = bytes(1 << 16)
MOUNT: Final = 'mount -t tmpfs -o size="$1",mode=700 campaign "$2" && echo mounted && exec sleep infinity'


class Disk(Protocol):
    """A home folder on some disk: `folder` is its path for the parties, `seen` its path for this process."""

    folder: Path
    seen: Path

    def command(self, command: Sequence[str]) -> list[str]:
        """The arguments of a process that runs a command so that the command sees the disk. The process turns
        into the command itself; it does not start the command as a child.
        """

    def close(self) -> None:
        """Release the disk."""


class OrdinaryDisk:
    """An ordinary folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = self.seen = folder

    def command(self, command: Sequence[str]) -> list[str]:
        """The command itself."""
        return list(command)

    def close(self) -> None:
        """Do nothing: the folder stays."""


class SmallDisk:
    """A disk of 16 MiB, mounted at a folder. Raises OSError if nothing can be mounted (see `may_mount`)."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._holder = subprocess.Popen(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh", SIZE, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "mounted\n":
            _, why = self._holder.communicate()
            raise OSError(f"no disk of {SIZE} at {folder}: {why.strip()}")
        self.folder = folder
        self.seen = Path(f"/proc/{self._holder.pid}/root{folder}")

    def command(self, command: Sequence[str]) -> list[str]:
        """The arguments that enter the namespace and run the command there."""
        spaces = [f"--target={self._holder.pid}", "--user", "--mount", "--preserve-credentials"]
        return ["nsenter", *spaces, f"--wd={ROOT}", "--", *command]

    def fill(self) -> None:
        """Take all free space, to the last byte."""
        with (self.seen / FILLER).open("ab", buffering=0) as filler, suppress(OSError):
            size = len(BLOCK)
            while True:
                try:
                    filler.write(BLOCK[:size])
                except OSError:
                    if size == 1:
                        raise
                    size //= 2

    def free(self) -> None:
        """Delete the file that takes the space."""
        (self.seen / FILLER).unlink(missing_ok=True)

    def close(self) -> None:
        """Kill the process that holds the namespace. The disk vanishes with it."""
        self._holder.kill()
        self._holder.communicate()


@cache
def may_mount() -> str | None:
    """Why this machine cannot have a small disk; None if it can."""
    if sys.platform != "linux":
        return "namespaces are Linux's"
    try:
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "x", "/mnt"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except OSError as error:
        return f"unshare: {error}"
    return done.stderr.strip() or None if done.returncode else None
