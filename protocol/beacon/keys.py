"""The signing key of the beacon that `assay beacon` runs. It is derived from an account's key, so the
account's key file is enough.
"""

from __future__ import annotations

import hmac
from hashlib import sha512
from typing import Final

from protocol.beacon.bn254 import ORDER

_TAG: Final = b"assay beacon 1"


def secret_of(account_key: bytes) -> int:
    """The beacon's secret scalar, derived from an account's private key of 32 bytes: an HMAC-SHA-512, reduced
    to the range 1 to ORDER - 1. The hash has 512 bits and the order only 254, so the scalar is close to
    uniform. The scalar does not reveal the account's key.
    """
    return int.from_bytes(hmac.digest(account_key, _TAG, sha512), "big") % (ORDER - 1) + 1
