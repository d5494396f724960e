"""Which versions of the arithmetic this release computes, each with its judging contract.

A deployment's arbiter states one version; terms and bundles name it. So a task of another version is a task on other
contracts. `protocol.execution.device.EXECUTORS` runs a version's programs.
"""

from __future__ import annotations

from typing import Final

from protocol.errors import AssayError

ARITHMETIC: Final = 1
"""The default version that `assay deploy` makes contracts for."""
ARBITERS: Final[dict[int, str]] = {1: "Arbiter"}


class UnknownArithmetic(AssayError):
    """A version of the arithmetic that this release does not compute."""


def is_computed(version: int) -> bool:
    """Whether this release computes a version."""
    return version in ARBITERS


def versions() -> str:
    """The versions that this release computes, for messages: "1"."""
    return ", ".join(map(str, sorted(ARBITERS)))


def require_computed(version: int, what: str) -> None:
    """Raises UnknownArithmetic for a version that this release does not compute; `what` names its source."""
    if not is_computed(version):
        raise UnknownArithmetic(
            f"arithmetic of {what}",
            expected=f"a version that this release computes: {versions()}",
            got=version,
            remedy="install the release that computes it",
        )
