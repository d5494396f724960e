// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../types/Ids.sol";
import {Refusals} from "./Refusals.sol";
import {Rfc9162} from "./Rfc9162.sol";

/// @title Salts and digests of seats, looks and jurors: audit.md section 4.
/// @notice A digest is the root of a tree with the shape of the solver's trees. The leaves of this tree are
/// hashes of chunks under the account's salt, so a digest cannot be derived from the solver's hashes.
/// Digests are modelled on the custody game of Ethereum's early sharding design.
library Digests {
    /// @notice A chunk has 1 to this many bytes.
    uint256 internal constant CHUNK = 1024;

    /// @notice The salt of a seat, look or juror. It includes the seed of the task's first draw, so nothing
    /// can be hashed before the draw.
    /// @param board The audit board.
    /// @param secret The account's secret: 32 bytes that nobody else knows.
    function salt(address board, TaskId task, uint256 seat, address account, bytes32 seed, bytes32 secret)
        internal
        view
        returns (bytes32)
    {
        return
            keccak256(
                abi.encode(bytes32("assay salt"), block.chainid, board, task, seat, account, seed, secret)
            );
    }

    /// @notice What an attestation reveals about its salt.
    function saltHash(bytes32 salt_) internal pure returns (bytes32) {
        return keccak256(abi.encode(salt_));
    }

    /// @notice What the audit board stores of an attestation.
    function attestation(bytes32 digest, bytes32 saltHash_) internal pure returns (bytes32) {
        return keccak256(abi.encode(digest, saltHash_));
    }

    /// @notice Leaf of a chunk under a salt: SHA-256 of a sequence of 64-byte blocks. For each 32-byte
    /// piece of the chunk there is a block of the salt and the piece; the last piece is padded with zeros.
    /// The final block is the salt and the chunk's length in bytes, as a 32-byte number.
    /// @dev Every 64-byte block contains the salt, so neither a midstate nor a shorter hash can replace the
    /// chunk.
    function leaf(bytes32 salt_, bytes calldata chunk) internal view returns (bytes32) {
        uint256 length = chunk.length;
        if (length == 0 || length > CHUNK) revert Refusals.OutOfBounds("chunk", 1, CHUNK, length);
        uint256 input;
        uint256 end;
        assembly ("memory-safe") {
            input := mload(0x40)
            end := input
            for { let i := 0 } lt(i, length) { i := add(i, 0x20) } {
                mstore(end, salt_)
                // The loaded word may extend beyond the chunk: these bytes are cleared.
                let left := sub(length, i)
                let piece := calldataload(add(chunk.offset, i))
                if lt(left, 0x20) {
                    let empty := shl(3, sub(0x20, left))
                    piece := shl(empty, shr(empty, piece))
                }
                mstore(add(end, 0x20), piece)
                end := add(end, 0x40)
            }
            mstore(end, salt_)
            mstore(add(end, 0x20), length)
            end := add(end, 0x40)
        }
        return Rfc9162.sha256Of(input, end - input);
    }

    /// @notice Whether the digest includes the chunk in this state of its segment; otherwise its leaf is the
    /// zero word.
    /// @param turns Turns of the chunk in its tensor's tree, as in `fold`.
    /// @param step Number of the state in its segment, 0 ... C.
    function selects(uint256 turns, uint256 step, uint256 thinning) internal pure returns (bool) {
        return (turns + step) % thinning == 0;
    }

    /// @notice The root of the tree that contains `node`, the hash of a leaf or inner node.
    /// @param turns Bit i is set if sibling i is on the left. The size of the tree is not checked here:
    /// `turns` and `depth` alone name the place.
    /// @param depth Number of siblings.
    /// @param path The siblings' hashes, bottom first.
    function fold(bytes32 node, uint256 turns, uint256 depth, bytes32[] calldata path)
        internal
        view
        returns (bytes32)
    {
        if (path.length != depth) revert Rfc9162.ProofLength(depth, path.length);
        // Otherwise a place would have several names.
        if (turns >> depth != 0) revert Refusals.OutOfBounds("turns", 0, (1 << depth) - 1, turns);
        for (uint256 i; i < depth; ++i) {
            node = turns >> i & 1 == 1 ? Rfc9162.nodeHash(path[i], node) : Rfc9162.nodeHash(node, path[i]);
        }
        return node;
    }
}
