// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {LeafTree} from "../dispute/LeafTree.sol";

/// @title The trees of a digest (audit.md section 4), on top of LeafTree; used for a verifier's side of a
/// test.
library SaltedTree {
    /// @notice The leaf of a chunk: the salt before each 32-byte piece, then the salt and the length.
    function leaf(bytes32 salt, bytes memory chunk) internal pure returns (bytes32) {
        bytes32[] memory words = new bytes32[](2 * ((chunk.length + 31) / 32) + 2);
        for (uint256 i; i < words.length; i += 2) {
            words[i] = salt;
            uint256 begin = 16 * i;
            if (begin >= chunk.length) {
                words[i + 1] = bytes32(chunk.length);
                continue;
            }
            bytes32 piece;
            assembly ("memory-safe") {
                piece := mload(add(add(chunk, 0x20), begin))
            }
            uint256 left = chunk.length - begin;
            words[i + 1] = left < 32 ? piece >> 8 * (32 - left) << 8 * (32 - left) : piece;
        }
        return sha256(abi.encodePacked(words));
    }

    /// @notice Bit i of `turns`: sibling i of the leaf's path, counted from the leaf upwards, is on the left.
    function placeOf(uint256 size, uint256 index) internal pure returns (uint32 turns, uint8 depth) {
        (uint256 begin, uint256 count) = (0, size);
        for (; count > 1; ++depth) {
            uint256 left = LeafTree.split(count);
            bool right = index >= begin + left;
            turns = turns << 1 | (right ? 1 : 0);
            (begin, count) = right ? (begin + left, count - left) : (begin, left);
        }
    }

    /// @notice Leaves of a value's tree in state `step`: the zero word where the chunk is not selected.
    function leaves(bytes32 salt, bytes memory value, uint256 step, uint256 thinning)
        internal
        pure
        returns (bytes32[] memory hashes)
    {
        hashes = new bytes32[]((value.length + 1023) / 1024);
        for (uint256 k; k < hashes.length; ++k) {
            (uint32 turns,) = placeOf(hashes.length, k);
            if ((turns + step) % thinning == 0) hashes[k] = leaf(salt, LeafTree.chunk(value, k));
        }
    }
}
