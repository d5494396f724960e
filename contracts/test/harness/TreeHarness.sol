// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Rfc9162} from "../../src/libraries/Rfc9162.sol";

/// @title External functions for Rfc9162, so that proofs are calldata.
contract TreeHarness {
    function leafHash(bytes calldata data) external view returns (bytes32) {
        return Rfc9162.leafHash(data);
    }

    function leafHash32(bytes32 value) external view returns (bytes32) {
        return Rfc9162.leafHash32(value);
    }

    function nodeHash(bytes32 left, bytes32 right) external view returns (bytes32) {
        return Rfc9162.nodeHash(left, right);
    }

    function rootFromPath(uint64 treeSize, uint64 lo, uint64 size, bytes32 node, bytes32[] calldata path)
        external
        view
        returns (bytes32)
    {
        return Rfc9162.rootFromPath(treeSize, lo, size, node, path);
    }

    function verifyConsistency(
        uint64 older,
        uint64 newer,
        bytes32 olderRoot,
        bytes32 newerRoot,
        bytes32[] calldata proof
    ) external view {
        Rfc9162.verifyConsistency(older, newer, olderRoot, newerRoot, proof);
    }

    function foldDescendants(uint64 size, uint256 levels, bytes32[] calldata hashes)
        external
        view
        returns (bytes32)
    {
        return Rfc9162.foldDescendants(size, levels, hashes);
    }

    /// @notice The tree head over leaf hashes, directly from RFC 9162 section 2.1.1.
    function treeHead(bytes32[] calldata leaves) external view returns (bytes32) {
        return _treeHead(leaves);
    }

    function _treeHead(bytes32[] calldata leaves) private view returns (bytes32) {
        if (leaves.length == 1) return leaves[0];
        uint64 left = Rfc9162.splitPoint(uint64(leaves.length));
        return Rfc9162.nodeHash(_treeHead(leaves[:left]), _treeHead(leaves[left:]));
    }
}
