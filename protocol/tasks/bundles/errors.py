"""Errors of bundles: whatever a stranger sends, one of these says what was expected, what came and what to
do.

    BundleError
    ├── BundleRefused       an address that the operator does not allow
    ├── BundleUnavailable   nothing, or not in time, at the address
    ├── BundleTooLarge      more bytes, tensors, programs or operations than the limits
    ├── BundleMalformed     a manifest or program that breaks the format, or `check`
    └── BundleMismatch      data that are not what the manifest, or the terms, say
"""

from __future__ import annotations


class BundleError(Exception):
    """Base of the errors of a bundle. `expected`, `got` and `remedy` are for display."""

    def __init__(self, what: str, *, expected: object, got: object, remedy: str) -> None:
        super().__init__(f"{what}: expected {expected}, got {got}; {remedy}")
        self.expected = expected
        self.got = got
        self.remedy = remedy


class BundleRefused(BundleError):
    """The address is not one that this operator fetches from."""


class BundleUnavailable(BundleError):
    """The server does not answer, answers with an error, or is too slow."""


class BundleTooLarge(BundleError):
    """A size beyond the operator's limits."""


class BundleMalformed(BundleError):
    """Not a bundle of this version, or a program that `check` refuses."""


class BundleMismatch(BundleError):
    """A hash, root, type or figure that is not the promised one."""
