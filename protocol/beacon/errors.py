"""What the beacon refuses."""

from protocol.errors import AssayError


class BeaconError(AssayError):
    """A key, secret, round or signature that the scheme does not have."""
