"""The signing key of the beacon that `assay beacon` runs: it follows from the key of an account, which the account's
file keeps.
"""

from __future__ import annotations

import hmac
from hashlib import sha512
from typing import Final

from protocol.beacon.bn254 import ORDER

_TAG: Final = b"assay beacon 1"


def secret_of(account_key: bytes) -> int:
    """The secret scalar of the account with this private key of 32 bytes: HMAC-SHA-512 modulo the group's order, whose
    254 bits the 512 cover evenly. Nobody learns the account's key from it.
    """
    return int.from_bytes(hmac.digest(account_key, _TAG, sha512), "big") % (ORDER - 1) + 1
