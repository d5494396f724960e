"""Errors of bundles, whatever a stranger sends. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, ExitCode


class BundleError(AssayError):
    """Base of the errors of a bundle."""


class BundleRefused(BundleError):
    """This operator does not fetch from the address."""


class BundleUnavailable(BundleError):
    """The server does not answer, answers with an error, or is too slow."""

    exit_code = ExitCode.RETRY


class WrongFile(BundleUnavailable):
    """The server sends something else than the hash names: other bytes, or more of them. It, or a proxy in front of
    it, may send the right file later.
    """


class BundleTooLarge(BundleError):
    """A size beyond the operator's limits."""


class TensorsTooLarge(BundleTooLarge):
    """According to its hash, the bundle has more bytes of tensors than there is room for; no server can change that."""


class BundleMalformed(BundleError):
    """Not a bundle of this version, or a program that `check` refuses."""


class BundleMismatch(BundleError):
    """A hash, root, type or figure that differs from the promised one."""
