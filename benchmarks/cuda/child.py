"""`python -m benchmarks.cuda.child PART SECONDS [--dry]`: runs one part, cell by cell.

If a cell raises an error, the error is written and the next cell runs. After SECONDS, no further cell is
started.
"""

from __future__ import annotations

import argparse
import logging
import time
from importlib import import_module

import torch

from benchmarks.cuda.cells import Cells, cell, write

PRODUCTS = ("int8-triton", "int8-mm", "float64")
MODELS = ("linear", "mlp", "gpt", "resnet", "gpt-0.9M", "gpt-11M")
PARTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "machine": ("machine", "cells", ()),
    **{f"self_tests:{name}": ("self_tests", "products", (name,)) for name in PRODUCTS},
    "self_tests:functions": ("self_tests", "functions", ()),
    "self_tests:roots": ("self_tests", "roots", ()),
    **{f"bits:{name}": ("bits", "of", (name,)) for name in MODELS},
    "times:steps": ("times", "step_cells", ()),
    "times:steps-86M": ("times", "step_cells", ("86M",)),
    "times:profile": ("times", "profile_cells", ()),
    "times:profile-86M": ("times", "profile_cells", ("86M",)),
    "times:products": ("times", "product_cells", ()),
    "times:tiles": ("tiles", "cells", ()),
    "times:lanes": ("lanes", "cells", ()),
}
"""Module, function and arguments of each part. A module is imported only by the parts that use it, so that an
import that fails does not affect other parts.
"""


def cells_of(part: str, device: torch.device) -> Cells:
    """The cells of a part."""
    module, function, names = PARTS[part]
    found: Cells = getattr(import_module(f"benchmarks.cuda.{module}"), function)(device, *names)
    return found


class _Messages(logging.Handler):
    """Keeps logged messages."""

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
    for name, action in cells_of(given.part, device):
        if time.monotonic() - start > given.seconds:
            write(name, {"left_out": "no time left"})
            continue
        messages.kept = []
        line = cell(action)
        write(name, {**line, "log": messages.kept} if messages.kept else line)


if __name__ == "__main__":
    main()
