"""Checks the beacon's signatures with py_ecc's pairing. Tests compare the contract with this."""

from __future__ import annotations

from py_ecc.fields import optimized_bn128_FQ as FQ
from py_ecc.fields import optimized_bn128_FQ2 as FQ2
from py_ecc.fields import optimized_bn128_FQ12 as FQ12
from py_ecc.optimized_bn128 import optimized_curve as curve
from py_ecc.optimized_bn128 import optimized_pairing as pairings

from protocol.beacon.bn254 import KEY_BYTES, ORDER, SIGNATURE_BYTES, P, hash_to_point, round_message
from protocol.beacon.errors import BeaconError
from protocol.beacon.rounds import Network


def is_signed(network: Network, number: int, signature: bytes) -> bool:
    """Whether `signature` is the signature that the network's key gives for round `number`. The check takes
    half a second.
    """
    return verify(network.key, round_message(number), signature)


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature of the message is valid for the key: e(signature, G2) = e(hash, key).

    Like the contract, it returns False for a signature with coordinates of P or more, for infinity and for
    points off the curve. Raises BeaconError if the signature has another length than `SIGNATURE_BYTES`, or if
    the key is invalid: of another length, with coordinates of P or more, off the curve or of another order.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise BeaconError(
            "length of the beacon's signature", expected=f"{SIGNATURE_BYTES} bytes", got=len(signature)
        )
    point = _words(signature)
    due = _checked_key(key)
    if max(point) >= P or point[1] ** 2 % P != (point[0] ** 3 + 3) % P:
        return False
    left = pairings.pairing(curve.neg(curve.G2), _projective(*point), final_exponentiate=False)
    right = pairings.pairing(due, _projective(*hash_to_point(message)), final_exponentiate=False)
    return bool(pairings.final_exponentiate(left * right) == FQ12.one())


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[start : start + 32], "big") for start in range(0, len(data), 32)]


def _projective(x: int, y: int) -> tuple[FQ, FQ, FQ]:
    return FQ(x), FQ(y), FQ(1)


def _checked_key(key: bytes) -> tuple[FQ2, FQ2, FQ2]:
    """The key as a point of G2. Raises BeaconError if it is not a point of G2."""
    if len(key) != KEY_BYTES:
        raise BeaconError("length of the beacon's key", expected=f"{KEY_BYTES} bytes", got=len(key))
    x1, x0, y1, y0 = _words(key)
    point = (FQ2([x0, x1]), FQ2([y0, y1]), FQ2.one())
    if (
        max(x1, x0, y1, y0) >= P
        or not curve.is_on_curve(point, curve.b2)
        or not curve.is_inf(curve.multiply(point, ORDER))
    ):
        raise BeaconError("the beacon's key", expected="a point of BN254's G2", got=f"0x{key.hex()}")
    return point
