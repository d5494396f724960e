// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {Proofs} from "../libraries/Proofs.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {SegmentIndex, TaskId} from "../types/Ids.sol";
import {Leaf} from "../types/Openings.sol";
import {GameState} from "./GameState.sol";

/// @title Claims: the step trees and traces that games require from the solver, each posted once (dispute.md
/// section 4).
abstract contract Claims is GameState {
    /// @inheritdoc IDisputeGame
    function expandSteps(
        TaskId task,
        SegmentIndex segment,
        bytes32 root,
        Leaf calldata first,
        Leaf calldata last
    ) external override {
        bytes32 key = Proofs.stepsKey(task, segment);
        ClaimRecord storage claim = _due(key, Kind.Steps);
        Proofs.requireContext(claim.context, Proofs.between(first.value, last.value));
        uint32 size = claim.size;
        Proofs.requireLeaf(root, size, 0, first);
        Proofs.requireLeaf(root, size, size - 1, last);
        _post(claim, root);
        emit StepsPosted(key, task, segment, root);
    }

    /// @inheritdoc IDisputeGame
    function expandTrace(bytes32 key, bytes32 root) external override {
        ClaimRecord storage claim = _due(key, Kind.Trace);
        _post(claim, root);
        emit TracePosted(key, TaskId.wrap(claim.task), root);
    }

    /// @inheritdoc IDisputeGame
    function claimOf(bytes32 key) external view override returns (Claim memory) {
        ClaimRecord storage claim = _claims[key];
        return Claim(
            claim.root, _programOf(claim), claim.context, claim.size, claim.postedAt, TaskId.wrap(claim.task)
        );
    }

    /// @dev Requests a claim from the solver, unless another game already did.
    function _request(TaskId task, bytes32 key, Kind kind, uint32 size, bytes32 program, bytes32 context)
        internal
    {
        ClaimRecord storage claim = _claims[key];
        if (claim.kind != Kind.None) return;
        (claim.task, claim.size, claim.kind) = (uint40(TaskId.unwrap(task)), size, kind);
        // A step tree has a context, a callee's trace a program.
        if (context != 0) claim.context = context;
        if (program != 0) claim.program = program;
    }

    /// @dev A claim of this kind that the caller, the solver, may post. It is never too late to post it here:
    /// each game that waits for it checks its own clock, and ignores a claim posted after its time was over.
    function _due(bytes32 key, Kind kind) private view returns (ClaimRecord storage claim) {
        claim = _claims[key];
        if (claim.kind != kind) revert Refusals.NotRequested(key);
        TaskId task = TaskId.wrap(claim.task);
        _requireSolver(task);
        _requireOpen(task);
        if (claim.postedAt != 0) revert Refusals.AlreadyPosted(key);
    }

    function _post(ClaimRecord storage claim, bytes32 root) private {
        claim.root = root;
        claim.postedAt = uint40(_now());
    }
}
