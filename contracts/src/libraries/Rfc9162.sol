// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Merkle trees of RFC 9162 over SHA-256: encoding.md section 2.
/// @notice Leaf and node hashes, the root above any node of the split, consistency, and refolding revealed
/// descendants. A tree is always identified by (root, size): a root alone does not bind its size.
/// @dev "Node" means a node of RFC 9162's own split: a tree of n > 1 leaves has a left part of k leaves, k
/// the largest power of two below n, and a right part of n - k. Leaves are nodes of size 1.
library Rfc9162 {
    /// @notice The leaves [lo, lo + size) are not a node of a tree of `treeSize` leaves.
    error NotANode(uint64 treeSize, uint64 lo, uint64 size);
    /// @notice A proof has `given` hashes, but its tree sizes require `expected`.
    error ProofLength(uint256 expected, uint256 given);
    /// @notice No consistency is defined from `older` to `newer` leaves: 1 <= older <= newer must hold.
    error SizesOutOfOrder(uint64 older, uint64 newer);
    /// @notice A consistency proof gives another root than the one committed for `size` leaves.
    error InconsistentRoot(uint64 size, bytes32 committed, bytes32 computed);
    /// @notice A tree or node without leaves has no hash here.
    error EmptyTree();
    /// @notice The SHA-256 precompile returned no digest: too little gas, or a chain without it.
    error Sha256Failed();

    // ------------------------------------------------------------------ hashes

    /// @notice SHA-256(0x00 || data).
    function leafHash(bytes calldata data) internal view returns (bytes32) {
        uint256 input;
        assembly ("memory-safe") {
            input := mload(0x40)
            mstore8(input, 0x00)
            calldatacopy(add(input, 1), data.offset, data.length)
        }
        return sha256Of(input, data.length + 1);
    }

    /// @notice SHA-256(0x00 || value): the leaf hash of a tree whose leaves are roots.
    function leafHash32(bytes32 value) internal view returns (bytes32) {
        uint256 input;
        assembly ("memory-safe") {
            input := mload(0x40)
            mstore8(input, 0x00)
            mstore(add(input, 1), value)
        }
        return sha256Of(input, 33);
    }

    /// @notice SHA-256(0x01 || left || right).
    function nodeHash(bytes32 left, bytes32 right) internal view returns (bytes32) {
        uint256 input;
        assembly ("memory-safe") {
            input := mload(0x40)
            mstore8(input, 0x01)
            mstore(add(input, 1), left)
            mstore(add(input, 33), right)
        }
        return sha256Of(input, 65);
    }

    // ------------------------------------------------------------------ inclusion of a node

    /// @notice The root of a tree of `treeSize` leaves whose node over the leaves [lo, lo + size) has hash
    /// `node`.
    /// @param path Sibling hashes from the node upwards, as in an RFC 9162 inclusion proof; a leaf has size
    /// 1.
    function rootFromPath(uint64 treeSize, uint64 lo, uint64 size, bytes32 node, bytes32[] calldata path)
        internal
        view
        returns (bytes32)
    {
        if (size == 1) return rootFromLeaf(treeSize, lo, node, path);
        (uint256 rights, uint256 depth) = _descend(treeSize, lo, size);
        if (path.length != depth) revert ProofLength(depth, path.length);
        // unchecked: i counts to at most 64.
        unchecked {
            for (uint256 i; i < depth; ++i) {
                node = (rights >> i) & 1 == 1 ? nodeHash(path[i], node) : nodeHash(node, path[i]);
            }
        }
        return node;
    }

    /// @notice The root of a tree of `treeSize` leaves whose leaf number `leaf` has hash `node`.
    /// @dev RFC 9162 section 2.1.3.2, in two parts. The first part ends at the level where the node is the
    /// last one of its level (there the RFC's `fn` and `sn` are equal). Below this level every node on the
    /// way has a sibling, and the bits of the leaf's number tell on which side the node is. From this level
    /// on, only set bits of the number have a sibling, which is on the left. Nearly all hashes of a dispute
    /// are computed here, so the loop is written in assembly: 330 gas per hash instead of 600.
    function rootFromLeaf(uint256 treeSize, uint256 leaf, bytes32 node, bytes32[] calldata path)
        internal
        view
        returns (bytes32)
    {
        if (leaf >= treeSize) {
            if (treeSize == 0) revert EmptyTree();
            revert NotANode(uint64(treeSize), uint64(leaf), 1);
        }
        bool done = true;
        uint256 used;
        assembly ("memory-safe") {
            // Two words for two nodes at a multiple of 64, so that an address bit selects the side; 0x01
            // precedes them.
            let left := and(add(mload(0x40), 0x5f), not(0x3f))
            let input := sub(left, 0x01)
            mstore8(input, 0x01)
            let next := path.offset
            // The sides; the next one is in bit 0x20.
            let sides := shl(5, leaf)
            mstore(or(left, and(sides, 0x20)), node)
            for { let apart := xor(leaf, sub(treeSize, 1)) } apart { apart := shr(1, apart) } {
                mstore(or(left, xor(and(sides, 0x20), 0x20)), calldataload(next))
                next := add(next, 0x20)
                sides := shr(1, sides)
                // Write the hash where the next iteration reads it.
                done := and(staticcall(gas(), 2, input, 0x41, or(left, and(sides, 0x20)), 0x20), done)
            }
            node := mload(or(left, and(sides, 0x20)))
            for { sides := shr(5, sides) } sides { sides := shr(1, sides) } {
                if and(sides, 1) {
                    mstore(left, calldataload(next))
                    mstore(add(left, 0x20), node)
                    next := add(next, 0x20)
                    done := and(staticcall(gas(), 2, input, 0x41, left, 0x20), done)
                    node := mload(left)
                }
            }
            used := shr(5, sub(next, path.offset))
            // A call to an address without code succeeds but returns no data.
            if used { done := and(done, eq(returndatasize(), 0x20)) }
        }
        if (!done) revert Sha256Failed();
        if (path.length != used) revert ProofLength(used, path.length);
        return node;
    }

    /// @notice Where two leaves of a tree part: the node that holds `leaf` and is the sibling of a node that
    /// holds `anchor`. Returns the node's first leaf and size, and its place in the path of `anchor`. Both
    /// leaves are below `treeSize` and differ.
    function parting(uint64 treeSize, uint64 anchor, uint64 leaf)
        internal
        pure
        returns (uint64 lo, uint64 size, uint256 place)
    {
        // At the level of the highest bit in which they differ, nodes of 2^level leaves are neighbours; the
        // tree's last node of a level may be smaller.
        uint256 level = Math.log2(anchor ^ leaf);
        (lo, size) = _nodeAt(treeSize, leaf, level);
        (uint64 begin, uint64 length) = _nodeAt(treeSize, anchor, level);
        place = level;
        if (length < 1 << level) (, place) = _descend(length, anchor - begin, 1);
    }

    /// @dev The node of a level that holds a leaf.
    function _nodeAt(uint64 treeSize, uint64 leaf, uint256 level)
        private
        pure
        returns (uint64 lo, uint64 size)
    {
        // unchecked: lo <= leaf < treeSize.
        unchecked {
            size = uint64(1 << level);
            lo = leaf & ~(size - 1);
            if (size > treeSize - lo) size = treeSize - lo;
        }
    }

    /// @dev Walks from the root down to the node. `rights` holds the turns taken, the last one in bit 0.
    function _descend(uint64 treeSize, uint64 lo, uint64 size)
        private
        pure
        returns (uint256 rights, uint256 depth)
    {
        if (size == 0 || treeSize == 0) revert EmptyTree();
        // 64-bit numbers in 256 bits: no sum below overflows.
        (uint256 begin, uint256 length) = (0, treeSize);
        (uint256 wantedBegin, uint256 wantedEnd) = (lo, uint256(lo) + size);
        if (wantedEnd > treeSize) revert NotANode(treeSize, lo, size);
        uint256 left = 1 << Math.log2(treeSize);
        // unchecked: at every turn, begin <= wantedBegin < wantedEnd <= begin + length.
        unchecked {
            while (length > size) {
                while (left >= length) left >>= 1;
                uint256 middle = begin + left;
                if (wantedEnd <= middle) {
                    length = left;
                    rights <<= 1;
                } else if (wantedBegin >= middle) {
                    (begin, length) = (middle, length - left);
                    rights = (rights << 1) | 1;
                } else {
                    revert NotANode(treeSize, lo, size);
                }
                ++depth;
            }
        }
        // length == size and the wanted leaves are inside, so they begin at `begin`.
    }

    // ------------------------------------------------------------------ consistency

    /// @notice Reverts unless the tree of `newer` leaves begins with the tree of `older` leaves (RFC 9162
    /// section 2.1.4.2). Equal sizes take an empty proof and equal roots.
    function verifyConsistency(
        uint64 older,
        uint64 newer,
        bytes32 olderRoot,
        bytes32 newerRoot,
        bytes32[] calldata proof
    ) internal view {
        if (older == 0 || older > newer) revert SizesOutOfOrder(older, newer);
        uint256 expected = consistencyLength(older, newer);
        if (proof.length != expected) revert ProofLength(expected, proof.length);
        if (older == newer) {
            if (olderRoot != newerRoot) revert InconsistentRoot(older, olderRoot, newerRoot);
            return;
        }
        // The walk starts at the largest complete subtree that ends the older tree. If that subtree is the
        // whole older tree, its root is known and the proof omits it. `fn` and `sn` are RFC 9162's names.
        uint256 fn = older - 1;
        uint256 sn = newer - 1;
        // unchecked: shifts, and an index that the length check above bounds.
        unchecked {
            while (fn & 1 == 1) (fn, sn) = (fn >> 1, sn >> 1);
            uint256 used;
            bytes32 olderHash = fn == 0 ? olderRoot : proof[used++];
            bytes32 newerHash = olderHash;
            while (used < expected) {
                bytes32 sibling = proof[used++];
                if (fn & 1 == 1 || fn == sn) {
                    olderHash = nodeHash(sibling, olderHash);
                    newerHash = nodeHash(sibling, newerHash);
                    while (fn & 1 == 0 && fn != 0) (fn, sn) = (fn >> 1, sn >> 1);
                } else {
                    newerHash = nodeHash(newerHash, sibling);
                }
                (fn, sn) = (fn >> 1, sn >> 1);
            }
            if (olderHash != olderRoot) revert InconsistentRoot(older, olderRoot, olderHash);
            if (newerHash != newerRoot) revert InconsistentRoot(newer, newerRoot, newerHash);
        }
    }

    /// @notice Number of hashes in the consistency proof from `older` to `newer` leaves, 1 <= older <= newer.
    function consistencyLength(uint64 older, uint64 newer) internal pure returns (uint256 count) {
        if (older == newer) return 0;
        // RFC 9162's SUBPROOF(m, D_n, b): one hash per turn down to the subtree that ends the older tree, and
        // that subtree's own hash unless it is the older tree itself (b still true).
        (uint256 m, uint256 n) = (older, newer);
        bool whole = true;
        uint256 left = 1 << Math.log2(n);
        // unchecked: left < n and, where subtracted, left < m.
        unchecked {
            while (m != n) {
                while (left >= n) left >>= 1;
                if (m <= left) {
                    n = left;
                } else {
                    (m, n, whole) = (m - left, n - left, false);
                }
                ++count;
            }
            if (!whole) ++count;
        }
    }

    // ------------------------------------------------------------------ revealed descendants

    /// @notice Number of maximal subtrees `levels` below a node of `size` leaves; a leaf met earlier counts
    /// once.
    function descendantCount(uint64 size, uint256 levels) internal pure returns (uint256) {
        if (size == 0) revert EmptyTree();
        if (levels == 0 || size == 1) return 1;
        uint64 left = splitPoint(size);
        // unchecked: left < size, levels > 0.
        unchecked {
            return descendantCount(left, levels - 1) + descendantCount(size - left, levels - 1);
        }
    }

    /// @notice Hash of a node of `size` leaves from its maximal subtrees `levels` below, in order.
    function foldDescendants(uint64 size, uint256 levels, bytes32[] calldata hashes)
        internal
        view
        returns (bytes32)
    {
        uint256 expected = descendantCount(size, levels);
        if (hashes.length != expected) revert ProofLength(expected, hashes.length);
        (bytes32 node,) = _fold(size, levels, hashes, 0);
        return node;
    }

    /// @notice Leaves in the left part of a tree of n > 1 leaves: the largest power of two below n.
    function splitPoint(uint64 n) internal pure returns (uint64) {
        // unchecked: n > 1.
        unchecked {
            return uint64(1 << Math.log2(n - 1));
        }
    }

    /// @dev Takes hashes from `next` on; returns the node's hash and the position after the last hash taken.
    function _fold(uint64 size, uint256 levels, bytes32[] calldata hashes, uint256 next)
        private
        view
        returns (bytes32, uint256)
    {
        // unchecked: left < size, levels > 0, next below the checked length.
        unchecked {
            if (levels == 0 || size == 1) return (hashes[next], next + 1);
            uint64 left = splitPoint(size);
            bytes32 leftNode;
            bytes32 rightNode;
            (leftNode, next) = _fold(left, levels - 1, hashes, next);
            (rightNode, next) = _fold(size - left, levels - 1, hashes, next);
            return (nodeHash(leftNode, rightNode), next);
        }
    }

    /// @notice SHA-256 of memory [input, input + length). The input lies at or after the free memory pointer,
    /// which is not moved.
    function sha256Of(uint256 input, uint256 length) internal view returns (bytes32 digest) {
        bool done;
        assembly ("memory-safe") {
            // Address 2. A call that runs out of gas fails; an address without code returns no data. Two
            // statements, because Yul evaluates arguments from last to first.
            done := staticcall(gas(), 2, input, length, 0x00, 0x20)
            done := and(done, eq(returndatasize(), 0x20))
            digest := mload(0x00)
        }
        if (!done) revert Sha256Failed();
    }
}
