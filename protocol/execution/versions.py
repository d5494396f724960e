"""The version of torch with which the arithmetic was tested.

Other versions in pyproject.toml's range are allowed. Every process checks the properties of torch on which it
relies (`protocol.numerics.self_check`), and a kernel with one wrong bit in its self-test is not used.
"""

from __future__ import annotations

from typing import Final

TESTED_TORCH: Final = "2.13"
"""Major and minor version, as in requirements.lock."""


def untested_torch(version: str) -> str | None:
    """A warning for the operator if this version of torch was not tested, else None."""
    if version.split("+")[0].split(".")[:2] == TESTED_TORCH.split("."):
        return None
    return f"torch {version} was not tested, {TESTED_TORCH} was: kernels that pass their self-tests are used"
