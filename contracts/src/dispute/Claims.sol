// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {DisputeErrors} from "../libraries/DisputeErrors.sol";
import {Proofs} from "../libraries/Proofs.sol";
import {Leaf} from "../types/Openings.sol";
import {GameState} from "./GameState.sol";

/// @title Claims: the step trees and traces that games ask of the solver, each posted once: dispute.md section 4.
abstract contract Claims is GameState {
    /// @inheritdoc IDisputeGame
    function expandSteps(uint256 task, uint32 segment, bytes32 root, Leaf calldata first, Leaf calldata last)
        external
        override
    {
        bytes32 key = Proofs.stepsKey(task, segment);
        ClaimRecord storage c = _due(key, Kind.Steps);
        Proofs.requireContext(c.context, Proofs.between(first.value, last.value));
        uint32 size = c.size;
        Proofs.requireLeaf(root, size, 0, first);
        Proofs.requireLeaf(root, size, size - 1, last);
        _post(c, root);
        emit StepsPosted(key, task, segment, root);
    }

    /// @inheritdoc IDisputeGame
    function expandTrace(bytes32 claim, bytes32 root) external override {
        ClaimRecord storage c = _due(claim, Kind.Trace);
        _post(c, root);
        emit TracePosted(claim, c.task, root);
    }

    /// @inheritdoc IDisputeGame
    function claimOf(bytes32 claim) external view override returns (Claim memory) {
        ClaimRecord storage c = _claims[claim];
        return Claim(c.root, _programOf(c), c.context, c.size, c.deadline, c.postedAt, uint256(c.task));
    }

    /// @dev Asks the solver for a claim, unless another game did.
    function _request(uint64 task, bytes32 key, Kind kind, uint32 size, bytes32 program, bytes32 context)
        internal
    {
        ClaimRecord storage c = _claims[key];
        if (c.kind != Kind.None) return;
        (c.task, c.deadline, c.size, c.kind) = (uint40(task), uint40(_enqueue(task)), size, kind);
        // A step tree has a context, a callee a program.
        if (context != 0) c.context = context;
        if (program != 0) c.program = program;
    }

    /// @dev A claim of this kind that the caller, the solver, may post now.
    function _due(bytes32 key, Kind kind) private view returns (ClaimRecord storage c) {
        c = _claims[key];
        if (c.kind != kind) revert DisputeErrors.NotRequested(key);
        _requireSolver(c.task);
        _requireOpen(c.task);
        if (c.postedAt != 0) revert DisputeErrors.AlreadyPosted(key);
        _requireInTime(c.deadline);
    }

    function _post(ClaimRecord storage c, bytes32 root) private {
        c.root = root;
        c.postedAt = uint40(_now());
        _dequeue(c.task);
    }
}
