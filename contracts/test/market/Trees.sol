// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title RFC 9162 trees of a few leaves and their proofs, written as the RFC's recursions; used for the
/// solver's side of a test.
library Trees {
    /// @notice MTH of section 2.1.1 over leaves[lo, hi).
    function root(bytes32[] memory leaves, uint256 lo, uint256 hi) internal pure returns (bytes32) {
        if (hi - lo == 1) return sha256(abi.encodePacked(bytes1(0x00), leaves[lo]));
        uint256 middle = lo + _split(hi - lo);
        return sha256(abi.encodePacked(bytes1(0x01), root(leaves, lo, middle), root(leaves, middle, hi)));
    }

    /// @notice Root over the first `size` leaves.
    function root(bytes32[] memory leaves, uint256 size) internal pure returns (bytes32) {
        return root(leaves, 0, size);
    }

    /// @notice PATH of section 2.1.3.1 for a leaf in the tree of the first `size` leaves.
    function path(bytes32[] memory leaves, uint256 index, uint256 size)
        internal
        pure
        returns (bytes32[] memory)
    {
        return _path(leaves, index, 0, size);
    }

    /// @notice PROOF of section 2.1.4.1 from the first `older` leaves to the first `newer`.
    function consistency(bytes32[] memory leaves, uint256 older, uint256 newer)
        internal
        pure
        returns (bytes32[] memory)
    {
        return _subproof(leaves, older, 0, newer, true);
    }

    function _path(bytes32[] memory leaves, uint256 index, uint256 lo, uint256 hi)
        private
        pure
        returns (bytes32[] memory)
    {
        if (hi - lo == 1) return new bytes32[](0);
        uint256 middle = lo + _split(hi - lo);
        if (index < middle) return _append(_path(leaves, index, lo, middle), root(leaves, middle, hi));
        return _append(_path(leaves, index, middle, hi), root(leaves, lo, middle));
    }

    function _subproof(bytes32[] memory leaves, uint256 older, uint256 lo, uint256 hi, bool whole)
        private
        pure
        returns (bytes32[] memory)
    {
        if (older == hi) {
            return whole ? new bytes32[](0) : _append(new bytes32[](0), root(leaves, lo, hi));
        }
        uint256 middle = lo + _split(hi - lo);
        if (older <= middle) {
            return _append(_subproof(leaves, older, lo, middle, whole), root(leaves, middle, hi));
        }
        return _append(_subproof(leaves, older, middle, hi, false), root(leaves, lo, middle));
    }

    function _append(bytes32[] memory list, bytes32 item) private pure returns (bytes32[] memory longer) {
        longer = new bytes32[](list.length + 1);
        for (uint256 i; i < list.length; ++i) {
            longer[i] = list[i];
        }
        longer[list.length] = item;
    }

    function _split(uint256 size) private pure returns (uint256 left) {
        left = 1;
        while (left * 2 < size) left *= 2;
    }
}
