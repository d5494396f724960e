// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Bn254} from "../../src/libraries/Bn254.sol";
import {HashToCurve} from "../../src/libraries/HashToCurve.sol";
import {SvdW} from "../../src/libraries/SvdW.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {Production} from "./Production.sol";

/// @title The beacon's steps before the pairing as external functions, because its hints are calldata.
contract CurveHarness {
    function map(uint256 u, MapHints calldata hints) external pure returns (uint256, uint256) {
        return SvdW.map(u, hints);
    }

    function hash(bytes32 message, MapHints[2] calldata hints) external view returns (uint256, uint256) {
        return HashToCurve.hash(message, hints);
    }

    function toField(bytes32 message) external pure returns (uint256[2] memory) {
        return HashToCurve.toField(message);
    }
}

/// @title Finds hints, as a caller of the beacon does off-chain, and signs rounds; here with the precompiles
/// MODEXP and ECMUL.
abstract contract Rounds is Production {
    uint256 internal constant P = Bn254.P;
    uint256 internal constant HALF = (P + 1) / 2;
    uint256 internal constant SECRET = 0xbeac0;

    CurveHarness internal curve = new CurveHarness();

    /// @dev SECRET times G2's generator, as computed by `protocol.beacon.bn254.public_key`.
    function _key() internal pure returns (uint256[4] memory) {
        return [
            0x0907a9f0c0526ec5aa0e9d7c2b31a7447564600a8753f42bc9441fa68d2c5af1,
            0x05f77202ea8c0c9884375f116fe577be8b8d0d8a4c5bc5f1422ac710cb7a07b2,
            0x0868d1e810108aea0828f1b95e606f54b85361f3ea704436eaf521e758e2a8b5,
            0x0845d0624c75fe9f39e2976795d50deb00991480c523967f52a7ac670db52df0
        ];
    }

    function _message(uint64 round) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(round));
    }

    function _sign(uint64 round) internal view returns (bytes memory) {
        return _signPoint(_point(_message(round)));
    }

    function _signPoint(uint256[2] memory point) private view returns (bytes memory) {
        (bool done, bytes memory signature) = address(7).staticcall(abi.encode(point, SECRET));
        assertTrue(done);
        return signature;
    }

    /// @dev A round's signature and hints, as a caller of the beacon sends them.
    function _round(uint64 round) internal view returns (bytes memory signature, MapHints[2] memory hints) {
        hints = _hints(round);
        uint256[2] memory point;
        (point[0], point[1]) = curve.hash(_message(round), hints);
        signature = _signPoint(point);
    }

    /// @dev The point that a message hashes to.
    function _point(bytes32 message) internal view virtual returns (uint256[2] memory point) {
        (point[0], point[1]) = curve.hash(message, _hintsOf(message));
    }

    function _hints(uint64 round) internal view returns (MapHints[2] memory) {
        return _hintsOf(_message(round));
    }

    function _hintsOf(bytes32 message) internal view returns (MapHints[2] memory) {
        uint256[2] memory u = curve.toField(message);
        return [_mapHints(u[0]), _mapHints(u[1])];
    }

    /// @dev RFC 9380's steps in order, with roots and inverses by exponentiation.
    function _mapHints(uint256 u) internal view returns (MapHints memory hints) {
        (uint256 x1, uint256 x2, uint256 x3) = _candidates(u);
        hints.inverse = _inverse(u);
        if (_isSquare(Bn254.g(x1))) {
            hints.root = _root(Bn254.g(x1), u);
        } else {
            hints.root = _root(P - Bn254.g(x1), u);
            hints.other = _root(_isSquare(Bn254.g(x2)) ? Bn254.g(x2) : Bn254.g(x3), u);
        }
    }

    function _candidates(uint256 u) internal view returns (uint256 x1, uint256 x2, uint256 x3) {
        uint256 square = mulmod(4, mulmod(u, u, P), P);
        uint256 slope = mulmod(mulmod(u, P + 1 - square, P), _inverse(u), P);
        // The even root of -12.
        slope = mulmod(slope, _root(P - 12, 0), P);
        uint256 ratio = mulmod(mulmod(1 + square, 1 + square, P), _inverse(u), P);
        // -16 / 3.
        uint256 c4 = mulmod(P - 16, _power(3, P - 2), P);
        x1 = addmod(P - HALF, P - slope, P);
        x2 = addmod(P - HALF, slope, P);
        x3 = addmod(1, mulmod(c4, mulmod(ratio, ratio, P), P), P);
    }

    /// @dev The square root with the parity of u; an arbitrary number if there is no root.
    function _root(uint256 square, uint256 u) internal view returns (uint256 root) {
        root = _power(square, (P + 1) / 4);
        if ((root ^ u) & 1 != 0) root = P - root;
    }

    function _isSquare(uint256 number) internal view returns (bool) {
        return _power(number, (P - 1) / 2) <= 1;
    }

    /// @dev The inverse of 1 - 16 u^4; 0 for 0, because 0^(P-2) = 0.
    function _inverse(uint256 u) private view returns (uint256) {
        uint256 square = mulmod(4, mulmod(u, u, P), P);
        return _power(mulmod(1 + square, P + 1 - square, P), P - 2);
    }

    function _power(uint256 base, uint256 exponent) private view returns (uint256) {
        (bool done, bytes memory result) = address(5).staticcall(abi.encode(32, 32, 32, base, exponent, P));
        assertTrue(done);
        return abi.decode(result, (uint256));
    }
}
