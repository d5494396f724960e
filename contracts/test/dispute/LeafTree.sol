// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title RFC 9162 trees over given leaf hashes, written as the RFC's recursions; used for a party's side of
/// a test.
library LeafTree {
    /// @notice Hash of a leaf's data.
    function leaf(bytes memory data) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(bytes1(0x00), data));
    }

    /// @notice Leaf hashes of a tree of roots.
    function leaves(bytes32[] memory values) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](values.length);
        for (uint256 k; k < values.length; ++k) {
            hashes[k] = leaf(abi.encodePacked(values[k]));
        }
    }

    /// @notice Leaf hashes of a value's tree: chunks of 1,024 bytes.
    function chunks(bytes memory value) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[]((value.length + 1023) / 1024);
        for (uint256 k; k < hashes.length; ++k) {
            hashes[k] = leaf(chunk(value, k));
        }
    }

    /// @notice Chunk `index` of a value.
    function chunk(bytes memory value, uint256 index) internal pure returns (bytes memory data) {
        uint256 begin = index * 1024;
        uint256 length = value.length - begin < 1024 ? value.length - begin : 1024;
        data = new bytes(length);
        assembly ("memory-safe") {
            mcopy(add(data, 0x20), add(add(value, 0x20), begin), length)
        }
    }

    function root(bytes32[] memory hashes) internal pure returns (bytes32) {
        return node(hashes, 0, hashes.length);
    }

    /// @notice Hash of the node over the leaves [lo, lo + size).
    function node(bytes32[] memory hashes, uint256 lo, uint256 size) internal pure returns (bytes32) {
        if (size == 1) return hashes[lo];
        uint256 left = split(size);
        return
            sha256(
                abi.encodePacked(bytes1(0x01), node(hashes, lo, left), node(hashes, lo + left, size - left))
            );
    }

    /// @notice Siblings of the node over [lo, lo + size) up to the root, bottom first.
    function path(bytes32[] memory hashes, uint256 lo, uint256 size)
        internal
        pure
        returns (bytes32[] memory)
    {
        return _path(hashes, lo, size, 0, hashes.length);
    }

    function path(bytes32[] memory hashes, uint256 index) internal pure returns (bytes32[] memory) {
        return _path(hashes, index, 1, 0, hashes.length);
    }

    /// @notice Siblings of a leaf up to, and without, the node that holds the leaf `anchor`.
    function beside(bytes32[] memory hashes, uint256 anchor, uint256 index)
        internal
        pure
        returns (bytes32[] memory)
    {
        if (anchor == index) return new bytes32[](0);
        (uint256 begin, uint256 count, uint256 left) = (0, hashes.length, split(hashes.length));
        while ((anchor < begin + left) == (index < begin + left)) {
            (begin, count) = index < begin + left ? (begin, left) : (begin + left, count - left);
            left = split(count);
        }
        if (index < begin + left) return _path(hashes, index, 1, begin, left);
        return _path(hashes, index, 1, begin + left, count - left);
    }

    /// @notice Roots of the maximal subtrees `levels` below a node, left to right.
    function descendants(bytes32[] memory hashes, uint256 lo, uint256 size, uint256 levels)
        internal
        pure
        returns (bytes32[] memory)
    {
        if (levels == 0 || size == 1) {
            bytes32[] memory one = new bytes32[](1);
            one[0] = node(hashes, lo, size);
            return one;
        }
        uint256 left = split(size);
        return _concat(
            descendants(hashes, lo, left, levels - 1), descendants(hashes, lo + left, size - left, levels - 1)
        );
    }

    /// @notice The first of the subtrees that `descendants` lists, as (lo, size), that holds a leaf in which
    /// two trees differ.
    function firstDifference(bytes32[] memory a, bytes32[] memory b, uint256 lo, uint256 size, uint256 levels)
        internal
        pure
        returns (uint256, uint256)
    {
        if (levels == 0 || size == 1) return (lo, size);
        uint256 left = split(size);
        if (node(a, lo, left) != node(b, lo, left)) return firstDifference(a, b, lo, left, levels - 1);
        return firstDifference(a, b, lo + left, size - left, levels - 1);
    }

    /// @notice Leaves in the left part of a tree of `size` > 1 leaves.
    function split(uint256 size) internal pure returns (uint256 left) {
        left = 1;
        while (left * 2 < size) left *= 2;
    }

    function _path(bytes32[] memory hashes, uint256 lo, uint256 size, uint256 begin, uint256 count)
        private
        pure
        returns (bytes32[] memory)
    {
        if (count == size) return new bytes32[](0);
        uint256 left = split(count);
        bytes32[] memory last = new bytes32[](1);
        if (lo < begin + left) {
            last[0] = node(hashes, begin + left, count - left);
            return _concat(_path(hashes, lo, size, begin, left), last);
        }
        last[0] = node(hashes, begin, left);
        return _concat(_path(hashes, lo, size, begin + left, count - left), last);
    }

    function _concat(bytes32[] memory a, bytes32[] memory b) private pure returns (bytes32[] memory both) {
        both = new bytes32[](a.length + b.length);
        for (uint256 k; k < both.length; ++k) {
            both[k] = k < a.length ? a[k] : b[k - a.length];
        }
    }
}
