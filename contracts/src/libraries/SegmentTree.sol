// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {Terms} from "../types/Terms.sol";
import {Refusals} from "./Refusals.sol";
import {Rfc9162} from "./Rfc9162.sol";

/// @title The append-only tree of a task's checkpoints: dispute.md section 2, "progress" and "submit".
library SegmentTree {
    /// @notice Extends the task's tree to `size` leaves under `root`. The first tree must begin with the
    /// initial state, a later one with the previous tree. So leaf 0 is fixed for good, and no later tree
    /// replaces a checkpoint of an earlier one.
    function extend(
        ITaskMarket.Task storage entry,
        Terms storage terms,
        bytes32 root,
        uint32 size,
        bytes32[] calldata firstPath,
        bytes32[] calldata consistency
    ) internal {
        if (entry.size == 0) {
            if (consistency.length != 0) revert Refusals.UnexpectedProof();
            requireLeaf(size, 0, terms.initialState, root, firstPath);
        } else {
            if (firstPath.length != 0) revert Refusals.UnexpectedProof();
            Rfc9162.verifyConsistency(entry.size, size, entry.root, root, consistency);
        }
        (entry.root, entry.size) = (root, size);
    }

    /// @notice Reverts unless leaf `index` of the tree is `leaf`.
    function requireLeaf(uint32 size, uint32 index, bytes32 leaf, bytes32 root, bytes32[] calldata path)
        internal
        view
    {
        bytes32 computed = Rfc9162.rootFromPath(size, index, 1, Rfc9162.leafHash32(leaf), path);
        if (computed != root) revert Refusals.LeafNotInTree(index, leaf, root, computed);
    }
}
