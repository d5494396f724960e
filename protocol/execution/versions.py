"""Which versions of torch the arithmetic was tested with.

Others in pyproject.toml's range may run: every process checks what torch itself must do
(`protocol.numerics.self_check`), and a kernel that gives one wrong bit in its self-test is not used.
"""

from __future__ import annotations

from typing import Final

TESTED_TORCH: Final = "2.13"
"""Major and minor version, as requirements.lock has it."""


def untested_torch(version: str) -> str | None:
    """A warning for an operator whose torch was not tested; None for a tested one."""
    if version.split("+")[0].split(".")[:2] == TESTED_TORCH.split("."):
        return None
    return f"torch {version} was not tested, {TESTED_TORCH} was: kernels that pass their self-tests are used"
