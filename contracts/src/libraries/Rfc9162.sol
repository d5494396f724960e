// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Merkle trees of RFC 9162 over SHA-256: design section 5, dispute.md section 6.
/// @notice Leaf and node hashes, the root above any node of the split, consistency, and the refolding of revealed
/// descendants. A tree is always named by (root, size): a root alone does not bind its size.
/// @dev "Node" means a node of RFC 9162's own split: a tree of n > 1 leaves has a left part of k leaves, k the largest
/// power of two below n, and a right part of n - k. Leaves are nodes of size 1.
library Rfc9162 {
    /// @notice The leaves [lo, lo + size) are no node of a tree of `treeSize` leaves.
    error NotANode(uint64 treeSize, uint64 lo, uint64 size);
    /// @notice A proof holds `given` hashes where its tree sizes ask for `expected`.
    error ProofLength(uint256 given, uint256 expected);
    /// @notice No consistency is defined from `older` to `newer` leaves: 1 <= older <= newer must hold.
    error SizesOutOfOrder(uint64 older, uint64 newer);
    /// @notice A consistency proof gives another root than the one committed for `size` leaves.
    error InconsistentRoot(uint64 size, bytes32 committed, bytes32 computed);
    /// @notice A tree or node of no leaves has no hash here.
    error EmptyTree();
    /// @notice The SHA-256 precompile gave no digest: too little gas, or a chain without it.
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
        return _sha256(input, data.length + 1);
    }

    /// @notice SHA-256(0x00 || value): the leaf hash of a tree whose leaves are roots.
    function leafHash32(bytes32 value) internal view returns (bytes32) {
        uint256 input;
        assembly ("memory-safe") {
            input := mload(0x40)
            mstore8(input, 0x00)
            mstore(add(input, 1), value)
        }
        return _sha256(input, 33);
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
        return _sha256(input, 65);
    }

    // ------------------------------------------------------------------ inclusion of a node

    /// @notice The root of a tree of `treeSize` leaves whose node over the leaves [lo, lo + size) has hash `node`.
    /// @param path Sibling hashes from the node upwards, as in an RFC 9162 inclusion proof; a leaf has size 1.
    function rootFromPath(uint64 treeSize, uint64 lo, uint64 size, bytes32 node, bytes32[] calldata path)
        internal
        view
        returns (bytes32)
    {
        if (size == 1 && lo < treeSize) return _rootFromLeaf(treeSize, lo, node, path);
        (uint256 rights, uint256 depth) = _descend(treeSize, lo, size);
        if (path.length != depth) revert ProofLength(path.length, depth);
        // unchecked: i counts to at most 64.
        unchecked {
            for (uint256 i; i < depth; ++i) {
                node = (rights >> i) & 1 == 1 ? nodeHash(path[i], node) : nodeHash(node, path[i]);
            }
        }
        return node;
    }

    /// @dev RFC 9162 section 2.1.3.2: `fn` and `sn` are the numbers of the node and of the last one of its level. Nearly all
    /// hashes of a dispute are made here, so it is written out: 300 gas each instead of 600.
    function _rootFromLeaf(uint64 treeSize, uint64 leaf, bytes32 node, bytes32[] calldata path)
        private
        view
        returns (bytes32)
    {
        bool done = true;
        uint256 sn = treeSize - 1;
        assembly ("memory-safe") {
            let input := mload(0x40)
            mstore8(input, 0x01)
            let left := add(input, 0x01)
            let fn := leaf
            let next := path.offset
            // Where the node stands beside its sibling: 0x20 on the right, 0 on the left. The last node of a level is taken to
            // the right; without a partner there it goes on to the level where it has one.
            let side := shl(5, or(and(fn, 1), eq(fn, sn)))
            mstore(add(left, side), node)
            for { let end := add(next, shl(5, path.length)) } lt(next, end) { next := add(next, 0x20) } {
                // At the root already: the path is too long.
                if iszero(sn) {
                    sn := 1
                    break
                }
                mstore(add(left, xor(side, 0x20)), calldataload(next))
                if side {
                    for {} iszero(or(and(fn, 1), iszero(fn))) {} {
                        fn := shr(1, fn)
                        sn := shr(1, sn)
                    }
                }
                fn := shr(1, fn)
                sn := shr(1, sn)
                side := shl(5, or(and(fn, 1), eq(fn, sn)))
                // The hash goes where the next one takes it from.
                done := and(staticcall(gas(), 2, input, 0x41, add(left, side), 0x20), done)
            }
            node := mload(add(left, side))
            // An address without code answers every call alike.
            if path.length { done := and(done, eq(returndatasize(), 0x20)) }
        }
        if (!done) revert Sha256Failed();
        if (sn != 0) {
            (, uint256 depth) = _descend(treeSize, leaf, 1);
            revert ProofLength(path.length, depth);
        }
        return node;
    }

    /// @notice Where two leaves of a tree part: the node that holds `leaf` and is the sibling of one that holds `anchor`, as
    /// its first leaf and its size, and its place in the path of `anchor`. Both are below `treeSize`, and they differ.
    function parting(uint64 treeSize, uint64 anchor, uint64 leaf)
        internal
        pure
        returns (uint64 lo, uint64 size, uint256 place)
    {
        // On the level of the highest bit in which they differ, nodes of 2^level leaves are neighbours; the tree's last
        // node of a level may be smaller.
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
        // unchecked: at every turn begin <= wantedBegin < wantedEnd <= begin + length.
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
        // length == size and the wanted leaves lie inside, so they begin at `begin`.
    }

    // ------------------------------------------------------------------ consistency

    /// @notice Reverts unless the tree of `newer` leaves begins with the tree of `older` leaves (RFC 9162 section
    /// 2.1.4.2). Equal sizes take an empty proof and equal roots.
    function verifyConsistency(
        uint64 older,
        uint64 newer,
        bytes32 olderRoot,
        bytes32 newerRoot,
        bytes32[] calldata proof
    ) internal view {
        if (older == 0 || older > newer) revert SizesOutOfOrder(older, newer);
        uint256 expected = consistencyLength(older, newer);
        if (proof.length != expected) revert ProofLength(proof.length, expected);
        if (older == newer) {
            if (olderRoot != newerRoot) revert InconsistentRoot(older, olderRoot, newerRoot);
            return;
        }
        // The walk starts at the largest whole subtree that ends the older tree; when that subtree is the whole older
        // tree, its root is known and no proof element is spent on it. `fn` and `sn` are RFC 9162's names.
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
        // RFC 9162's SUBPROOF(m, D_n, b): one hash per turn down to the subtree that ends the older tree, and that
        // subtree's own hash unless it is the older tree itself (b still true).
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

    /// @notice Number of maximal subtrees `levels` below a node of `size` leaves; a leaf met earlier counts once.
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
        if (hashes.length != expected) revert ProofLength(hashes.length, expected);
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

    /// @dev Takes hashes from `next` on; returns the node's hash and the position behind the last hash taken.
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

    /// @dev SHA-256 of memory [input, input + length) behind the free pointer, which stays where it is.
    function _sha256(uint256 input, uint256 length) private view returns (bytes32 digest) {
        bool done;
        assembly ("memory-safe") {
            // Address 2. A call that runs out of gas fails; an address without code gives no data. Two statements,
            // because Yul evaluates arguments from the last to the first.
            done := staticcall(gas(), 2, input, length, 0x00, 0x20)
            done := and(done, eq(returndatasize(), 0x20))
            digest := mload(0x00)
        }
        if (!done) revert Sha256Failed();
    }
}
