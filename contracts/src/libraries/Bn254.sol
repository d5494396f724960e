// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The curve BN254, y^2 = x^3 + 3 over the integers modulo P, using the precompiles of EIP-196 and
/// EIP-197.
library Bn254 {
    /// @notice The field's modulus.
    uint256 internal constant P = 0x30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47;

    /// @dev -G2 as EIP-197 orders it: x1, x0, y1, y0.
    uint256 private constant NEGATED_X1 = 0x198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2;
    uint256 private constant NEGATED_X0 = 0x1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed;
    uint256 private constant NEGATED_Y1 = 0x275dc4a288d1afb3cbb1ac09187524c7db36395df7be3b99e673b13a075a65ec;
    uint256 private constant NEGATED_Y0 = 0x1d9befcd05a5323e6da4d435f3b617cdb3af83285c2df711ef39c01571827f9d;

    /// @notice x^3 + 3, below P.
    function g(uint256 x) internal pure returns (uint256) {
        return addmod(mulmod(mulmod(x, x, P), x, P), 3, P);
    }

    /// @notice Whether (x, y) is a point of G1 other than infinity, with both coordinates below P. The
    /// cofactor is 1, so every point of the curve is in the group.
    function isPoint(uint256 x, uint256 y) internal pure returns (bool) {
        return x < P && y < P && mulmod(y, y, P) == g(x);
    }

    /// @notice The sum of two points of G1: x1, y1, x2, y2.
    function add(uint256[4] memory points) internal view returns (uint256 x, uint256 y) {
        bool done;
        assembly ("memory-safe") {
            done := staticcall(gas(), 6, points, 0x80, points, 0x40)
        }
        // Both are points, so the call can fail only for lack of gas.
        assert(done);
        return (points[0], points[1]);
    }

    /// @notice Whether e(signature, G2) = e(hash, key), for points of G1 and a key for which `isKey` is true.
    function isSigned(uint256[2] memory signature, uint256 hashX, uint256 hashY, uint256[4] memory key)
        internal
        view
        returns (bool)
    {
        uint256[12] memory words = [
            signature[0],
            signature[1],
            NEGATED_X1,
            NEGATED_X0,
            NEGATED_Y1,
            NEGATED_Y0,
            hashX,
            hashY,
            key[0],
            key[1],
            key[2],
            key[3]
        ];
        bool done;
        assembly ("memory-safe") {
            done := staticcall(gas(), 8, words, 0x180, words, 0x20)
        }
        return done && words[0] == 1;
    }

    /// @notice Whether `key` (x1, x0, y1, y0) is a point of G2 other than infinity. The precompile refuses
    /// anything that is not a point of G2, and e(G1, infinity) is 1.
    function isKey(uint256[4] memory key) internal view returns (bool) {
        uint256[6] memory words = [uint256(1), 2, key[0], key[1], key[2], key[3]];
        bool done;
        assembly ("memory-safe") {
            done := staticcall(gas(), 8, words, 0xc0, words, 0x20)
        }
        return done && words[0] == 0;
    }
}
