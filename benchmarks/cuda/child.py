"""`python -m benchmarks.cuda.child PART SECONDS [--dry]`: one part, cell by cell.

A cell that raises is written down as an error and the next one runs. After SECONDS no further cell is begun.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable

import torch

from benchmarks.cuda import bits, machine, tiles, times, trials
from benchmarks.cuda.cells import Cells, cell, write
from benchmarks.cuda.models import MODELS

PARTS: dict[str, Callable[[torch.device], Cells]] = {
    "machine": machine.cells,
    **{f"trials:{name}": trials.products(name) for name in trials.PRODUCTS},
    "trials:functions": trials.functions,
    "trials:roots": trials.roots,
    **{f"bits:{model.name}": bits.of(model) for model in MODELS},
    "times:steps": times.step_cells,
    "times:profile": times.profile_cells,
    "times:products": times.product_cells,
    "times:tiles": tiles.cells,
}


class _Messages(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record.getMessage())


def main() -> None:
    """Run the part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=[*PARTS])
    parser.add_argument("seconds", type=float)
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    messages = _Messages()
    logging.getLogger("assay").addHandler(messages)
    device = torch.device("cpu" if given.dry else "cuda")
    start = time.monotonic()
    for name, action in PARTS[given.part](device):
        if time.monotonic() - start > given.seconds:
            write(name, {"left_out": "no time left"})
            continue
        messages.kept = []
        line = cell(action)
        write(name, {**line, "log": messages.kept} if messages.kept else line)


if __name__ == "__main__":
    main()
