"""The date, commit and hardware of a measurement, which are stored with every figure."""

from __future__ import annotations

import datetime
import os
import platform
import shutil
import subprocess
from pathlib import Path

import torch

from protocol.numerics.kernels.dispatch import kernel_for

ROOT = Path(__file__).parents[1]


def where() -> dict[str, str]:
    """Date, commit and hardware."""
    return {"date": datetime.date.today().isoformat(), "commit": commit(), "hardware": hardware()}


def commit() -> str:
    """Short hash of the checkout, with "-dirty" appended if files outside docs/ have changed. Changes in
    docs/ do not count, because the figures are stored there.
    """
    head = _git("rev-parse", "--short=7", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return f"{head or 'unknown'}{'-dirty' if changed else ''}"


def hardware() -> str:
    """Processor, number of cores, and the kernel used for products of 13 x 13 bits."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [text.split(":")[1].strip() for text in info.read_text().splitlines() if "model name" in text]
        cpu = names[0] if names else cpu
    return f"{cpu}, {os.cpu_count()} cores, {kernel_for(torch.device('cpu'), 13, 13).name}"


def _git(*arguments: str) -> str:
    if shutil.which("git") is None:
        return ""
    run = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=ROOT)
    return run.stdout.strip()
