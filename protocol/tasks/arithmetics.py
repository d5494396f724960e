"""The versions of the arithmetic that this release computes.

A deployment's arbiter judges one version, which terms and bundles name. So tasks of another version need
another deployment. `protocol.execution.device.EXECUTORS` runs the programs of each version.
"""

from __future__ import annotations

from typing import Final

from protocol.errors import AssayError

ARITHMETIC: Final = 1
"""The version for which `assay deploy` makes contracts unless told otherwise."""
ARBITERS: Final[dict[int, str]] = {1: "Arbiter"}


class UnknownArithmetic(AssayError):
    """A version of the arithmetic that this release does not compute."""


def is_computed(version: int) -> bool:
    """Whether this release computes a version."""
    return version in ARBITERS


def versions() -> str:
    """The versions that this release computes, as text for messages: "1"."""
    return ", ".join(map(str, sorted(ARBITERS)))


def require_computed(version: int, what: str) -> None:
    """Raise UnknownArithmetic for a version that this release does not compute. `what` names the source of
    the version.
    """
    if not is_computed(version):
        raise UnknownArithmetic(
            f"arithmetic of {what}",
            expected=f"a version that this release computes: {versions()}",
            got=version,
            remedy="install the release that computes it",
        )
