// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MapHints} from "../types/Hints.sol";
import {Bn254} from "./Bn254.sol";
import {SvdW} from "./SvdW.sol";

/// @title Hashes 32 bytes to BN254's G1 by RFC 9380's BN254G1_XMD:KECCAK-256_SVDW_RO_, with drand's domain
/// tag.
library HashToCurve {
    uint256 private constant P = Bn254.P;
    /// @dev The domain tag, followed by its length.
    bytes private constant TAG = "BLS_SIG_BN254G1_XMD:KECCAK-256_SVDW_RO_NUL_\x2b";

    /// @notice The point of a message; (0, 0) for infinity. Reverts with `WrongHint` unless the hints are the
    /// message's.
    function hash(bytes32 message, MapHints[2] calldata hints) internal view returns (uint256 x, uint256 y) {
        uint256[2] memory u = toField(message);
        uint256[4] memory points;
        for (uint256 i; i < 2; ++i) {
            (points[2 * i], points[2 * i + 1]) = SvdW.map(u[i], hints[i]);
        }
        return Bn254.add(points);
    }

    /// @notice The two field elements of a message (sections 5.2 and 5.3.1): 96 uniform bytes, 48 for each.
    function toField(bytes32 message) internal pure returns (uint256[2] memory) {
        // The input begins with a block of zeros; a block of keccak256 has 136 bytes. Then come the
        // message, the length 96 as two bytes, a zero byte and the tag.
        bytes32 b0 = keccak256(
            bytes.concat(bytes32(0), bytes32(0), bytes32(0), bytes32(0), bytes8(0), message, hex"006000", TAG)
        );
        bytes32 b1 = keccak256(bytes.concat(b0, hex"01", TAG));
        bytes32 b2 = keccak256(bytes.concat(b0 ^ b1, hex"02", TAG));
        bytes32 b3 = keccak256(bytes.concat(b0 ^ b2, hex"03", TAG));
        return [
            addmod(mulmod(uint256(b1), 1 << 128, P), uint256(b2) >> 128, P),
            addmod(mulmod(uint128(uint256(b2)), type(uint256).max % P + 1, P), uint256(b3), P)
        ];
    }
}
