"""Errors of bundles. A stranger's bundle raises only these errors, no matter what is wrong with it.

`protocol.errors` draws the tree of all errors.
"""

from __future__ import annotations

from protocol.errors import AssayError, ExitCode


class BundleError(AssayError):
    """Base of the errors of a bundle."""


class BundleRefused(BundleError):
    """The operator's settings do not allow fetching from this address."""


class BundleUnavailable(BundleError):
    """The server does not answer, answers with an error, or is too slow; or a file cannot be read."""

    exit_code = ExitCode.RETRY


class WrongFile(BundleUnavailable):
    """The server sends bytes that do not have the hash, or too many bytes. The server, or a proxy in front of
    it, may send the right file later.
    """


class NoRoomYet(BundleUnavailable):
    """The disk has no room for the bundle's tensors, because the tensors of other bundles take it. Those
    bundles are being fetched, or were fetched and may soon be deleted.
    """


class NoMapsYet(BundleUnavailable):
    """Other bundles in memory use the memory maps that the bundle's large tensors need."""


class BundleTooLarge(BundleError):
    """A size is beyond the operator's limits."""


class TensorsTooLarge(BundleTooLarge):
    """The bundle's tensors are larger than allowed. Their sizes follow from the bundle's hash, so another
    server does not help.
    """


class BundleMalformed(BundleError):
    """The data is not a bundle of this version, or `check` refuses its program."""


class BundleMismatch(BundleError):
    """An id, root, type or number differs from the promised one, or a tensor's bytes are not canonical.

    Also raised if this release does not compute the bundle's version of the arithmetic.
    """
