"""`python -m tests.e2e.guide FILE FOLDER`: follow a guide in a folder like a newcomer, and print the output.

`sh` blocks are run line by line. A line that ends in `&` keeps running, and the next line is run once that
program reports that it is ready. A `toml` block is appended to the file named in the line before it. The
`python` blocks are parts of one program; each part is run when its block is reached.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.hurrying import Hurrying

READY: Final = {
    "assay devnet": "Ctrl-C ends it",
    "assay serve": "/bundles/",
    "verifier watch": "ready",
    "solver run": "ready",
}
"""For each background program, the output that shows that it is ready. The key is the beginning of the
program's command line.
"""
BLOCK: Final = re.compile(r"(?:^|\n)([^\n]*)\n+```(\w+)\n(.*?)```", re.DOTALL)
NAMED: Final = re.compile(r"`([\w./-]+\.toml)`")
PATIENCE: Final = 180.0
"""Seconds that one line may take, even on a busy machine."""
RPC: Final = "http://127.0.0.1:8545"


@dataclass(frozen=True)
class Block:
    """A block of a document, and the line of text before it."""

    before: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The block's lines, without empty lines and comments."""
        return [line for line in self.text.splitlines() if line.strip() and not line.startswith("#")]


def blocks(document: str) -> Iterator[Block]:
    """The blocks of a document, in order."""
    for found in BLOCK.finditer(document):
        yield Block(*found.groups())


class Newcomer:
    """Runs what a guide says."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        self._names: dict[str, object] = {"__name__": "__main__"}

    def do(self, block: Block) -> None:
        """Run an `sh` or `python` block, or append a `toml` block to its file; ignore other blocks."""
        if block.language == "sh":
            for line in block.commands:
                print(f"$ {line}", flush=True)
                (self._begin if line.endswith("&") else self._run)(line)
        elif block.language == "toml":
            (name,) = NAMED.findall(block.before)
            with (self._folder / name).open("a") as file:
                file.write("\n" + block.text)
        elif block.language == "python":
            exec(compile(block.text, "<guide>", "exec"), self._names)  # noqa: S102

    def close(self) -> None:
        """Terminate the running programs, the last one first."""
        for process in reversed(self._running):
            process.terminate()
        for process in self._running:
            process.wait(60)

    def _run(self, line: str) -> None:
        subprocess.run(
            ["bash", "-c", line], cwd=self._folder, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
        )

    def _begin(self, line: str) -> None:
        (ready,) = (text for start, text in READY.items() if line.startswith(start))
        log = self._folder / f"{len(self._running)}.log"
        with log.open("wb") as file:
            command = ["bash", "-c", f"exec {line.removesuffix('&')}"]
            self._running.append(
                subprocess.Popen(
                    command, cwd=self._folder, stdout=file, stderr=file, stdin=subprocess.DEVNULL
                )
            )
        deadline = time.monotonic() + PATIENCE
        while ready not in log.read_text():
            if self._running[-1].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{line}: {log.read_text()}")
            time.sleep(0.1)


def main(file: str, folder: str) -> None:
    """Follow the whole guide."""
    import os

    newcomer = Newcomer(Path(folder))
    os.chdir(folder)
    with Hurrying(RPC):
        try:
            for block in blocks(Path(file).read_text()):
                newcomer.do(block)
        finally:
            newcomer.close()
    print("the guide is done")


if __name__ == "__main__":
    main(*sys.argv[1:])
