"""BLS signatures on BN254 by drand's scheme `bls-bn254-unchained-on-g1`, and hints for the contract that
checks the signatures.

A round's message is keccak256(round as u64), hashed to G1 by RFC 9380's BN254G1_XMD:KECCAK-256_SVDW_RO_. A
signature is the resulting point times the secret (64 bytes: x, y). A key is G2's generator times the secret
(128 bytes in drand's order: x1, x0, y1, y0, where x = x0 + x1 i). The round's word is sha256(signature).
Numbers are big-endian.

Mapping to the curve needs inverses and square roots. They are expensive for the EVM to compute but cheap to
check, so the caller passes them as `hints`. The hints are unique; contracts/src/libraries/SvdW.sol explains
why.

Nothing here checks signatures: the contract does (`word` of contracts/src/DrandBeacon.sol), with its chain's
pairing precompile.

Signing is not constant-time, so its timing may reveal the secret. Only the beacons of development chains and
test networks sign with this module.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from eth_utils.crypto import keccak
from py_ecc.fields import optimized_bn128_FQ as FQ
from py_ecc.optimized_bn128 import optimized_curve as curve

from protocol.beacon.errors import BeaconError

P: int = curve.field_modulus
ORDER: int = curve.curve_order
SIGNATURE_BYTES = 64
KEY_BYTES = 128
DST = b"BLS_SIG_BN254G1_XMD:KECCAK-256_SVDW_RO_NUL_"

KECCAK_BLOCK = 136

# RFC 9380, section 6.6.1, with Z = 1: c1 = g(Z), c2 = -Z / 2, c3 = the even sqrt(-g(Z) 3 Z^2), c4 = -4 g(Z) / (3 Z^2).
_C1 = 4
_C2 = -pow(2, -1, P) % P
_C3 = 0x16789AF3A83522EB353C98FC6B36D713D5D8D1CC5DFFFFFFA
_C4 = -16 * pow(3, -1, P) % P


class Point(NamedTuple):
    """A point of G1 in affine coordinates; (0, 0) is infinity, as for the EVM."""

    x: int
    y: int


class MapHints(NamedTuple):
    """Hints for mapping a field element u to the curve y^2 = g(x) = x^3 + 3: one inverse, and one or two
    square roots. With them, the mapping needs no division and no root.

    All three numbers are below P, and the roots have the parity of u. The hints of u are therefore unique,
    and so are those of a message. In the descriptions of the fields, x1, x2 and x3 are the `candidates` of u.
    """

    inverse: int
    """inv0(1 - 16 u^4): the inverse modulo P, and 0 for 0."""
    root: int
    """The square root of g(x1) if g(x1) is a square, otherwise that of -g(x1). Because P = 3 mod 4, exactly
    one of the two is a square.
    """
    other: int
    """0 if g(x1) is a square. Otherwise exactly one of g(x2) and g(x3) is a square, and `other` is the square
    root of that one.
    """


Hints = tuple[MapHints, MapHints]
"""The hints of the two field elements that a message hashes to: the argument `hints` of DrandBeacon."""


def round_message(round: int) -> bytes:
    """Return the message of a round: the 32 bytes that are signed."""
    if not 0 < round < 1 << 64:
        raise BeaconError("round of the beacon", expected="1 to 2^64 - 1", got=round)
    return keccak(round.to_bytes(8, "big"))


def word(signature: bytes) -> bytes:
    """Return the round's random word, 32 bytes."""
    return sha256(signature).digest()


def public_key(secret: int) -> bytes:
    """Return the public key of a secret from 1 to ORDER - 1."""
    x, y = curve.normalize(curve.multiply(curve.G2, _checked_secret(secret)))
    return b"".join(int(part).to_bytes(32, "big") for part in (*reversed(x.coeffs), *reversed(y.coeffs)))


def sign(secret: int, message: bytes) -> bytes:
    """Return the signature of a message under a secret from 1 to ORDER - 1."""
    x, y = curve.normalize(curve.multiply(_projective(hash_to_point(message)), _checked_secret(secret)))
    return int(x).to_bytes(32, "big") + int(y).to_bytes(32, "big")


def expand_message(message: bytes, length: int, dst: bytes) -> bytes:
    """Expand a message to `length` uniform bytes, at most 8,160: RFC 9380's expand_message_xmd with
    keccak256.
    """
    suffix = dst + bytes([len(dst)])
    first = keccak(bytes(KECCAK_BLOCK) + message + length.to_bytes(2, "big") + b"\0" + suffix)
    blocks = [keccak(first + b"\1" + suffix)]
    for index in range(2, -(-length // 32) + 1):
        mixed = bytes(a ^ b for a, b in zip(first, blocks[-1], strict=True))
        blocks.append(keccak(mixed + bytes([index]) + suffix))
    return b"".join(blocks)[:length]


def hash_to_field(message: bytes) -> tuple[int, int]:
    """Return the two field elements of a message, each reduced from 48 bytes (RFC 9380, section 5.2)."""
    uniform = expand_message(message, 96, DST)
    return int.from_bytes(uniform[:48], "big") % P, int.from_bytes(uniform[48:], "big") % P


def hash_to_point(message: bytes) -> Point:
    """Return the point of G1 to which a message hashes (RFC 9380, section 3; the cofactor is 1)."""
    first, second = (_projective(map_to_point(u)) for u in hash_to_field(message))
    x, y = curve.normalize(curve.add(first, second))
    return Point(int(x), int(y))


def map_to_point(u: int) -> Point:
    """Map a field element to the curve by Shallue and van de Woestijne's method (RFC 9380, section 6.6.1)."""
    x1, x2, x3 = candidates(u)
    hint = map_hints(u)
    if hint.root**2 % P == _g(x1):
        return Point(x1, hint.root)
    return Point(x2 if hint.other**2 % P == _g(x2) else x3, hint.other)


def candidates(u: int) -> tuple[int, int, int]:
    """Return the candidates x1, x2, x3 of a field element. The x of the element's point is the first of them
    for which g(x) is a square.
    """
    square = _C1 * u * u
    inverse = _inv0(u)
    slope = u * (1 - square) * inverse * _C3
    ratio = (1 + square) ** 2 * inverse
    return (_C2 - slope) % P, (_C2 + slope) % P, (1 + _C4 * ratio * ratio) % P


def hints(message: bytes) -> Hints:
    """Return the hints that DrandBeacon needs to check a signature of this message."""
    first, second = hash_to_field(message)
    return map_hints(first), map_hints(second)


def map_hints(u: int) -> MapHints:
    """Return the hints of one field element."""
    x1, x2, x3 = candidates(u)
    root = _root(_g(x1), u)
    if root is not None:
        return MapHints(_inv0(u), root, 0)
    below = _root(-_g(x1), u)
    other = _root(_g(x2), u) or _root(_g(x3), u)
    assert below is not None, "g has no root, and -1 is no square"
    assert other is not None, "g(x1) g(x2) g(x3) is a square"
    return MapHints(_inv0(u), below, other)


def _g(x: int) -> int:
    return (x**3 + 3) % P


def _inv0(u: int) -> int:
    product = (1 - 16 * u**4) % P
    return pow(product, -1, P) if product else 0


def _root(square: int, u: int) -> int | None:
    """The square root of `square` modulo P that has the parity of u, or None if `square` has no root. Uses P
    = 3 mod 4.
    """
    root = pow(square, (P + 1) // 4, P)
    if root * root % P != square % P:
        return None
    return root if root % 2 == u % 2 else P - root


def _projective(point: Point) -> tuple[FQ, FQ, FQ]:
    return (FQ(point.x), FQ(point.y), FQ(1)) if any(point) else curve.Z1


def _checked_secret(secret: int) -> int:
    if not 0 < secret < ORDER:
        raise BeaconError("secret of the beacon", expected=f"1 to {ORDER - 1}", got="another number")
    return secret
