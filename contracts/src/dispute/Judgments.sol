// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Evidence} from "../Evidence.sol";
import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {DisputeErrors} from "../libraries/DisputeErrors.sol";
import {Proofs} from "../libraries/Proofs.sol";
import {ChunkOpening, InstructionOpening, Leaf} from "../types/Openings.sol";
import {GameState} from "./GameState.sol";

/// @title The last move: one element, or one edge of a frame, is computed here: dispute.md sections 4 and 5.
/// @notice Different bits convict the solver, equal bits revert. A call that fails inside (also for want of gas)
/// reverts the move; it never decides.
abstract contract Judgments is GameState {
    /// @inheritdoc IDisputeGame
    function judge(
        uint256 game,
        bytes32 head,
        InstructionOpening calldata,
        uint64 element,
        Leaf[] calldata,
        ChunkOpening[] calldata,
        Leaf calldata,
        ChunkOpening calldata
    ) external override {
        Record storage g = _challengerTurn(game, head, Phase.Frame);
        ClaimRecord storage c = _reached(g);
        (uint32 n, uint64 bits, uint64 computed) =
            abi.decode(_proved(Evidence.judge.selector, c), (uint32, uint64, uint64));
        if (computed == bits) revert DisputeErrors.ElementAgrees(bits);
        emit Judged(game, n, element, bits, computed);
        _convict(game, g, Verdict.SolverFalse);
    }

    /// @inheritdoc IDisputeGame
    function judgeInput(
        uint256 game,
        bytes32 head,
        InstructionOpening calldata,
        Leaf calldata,
        Leaf calldata source,
        bytes32 before,
        bytes32 afterwards,
        bytes calldata
    ) external override {
        Record storage g = _challengerTurn(game, head, Phase.Frame);
        ClaimRecord storage c = _reached(g);
        Evidence.Edge memory edge = abi.decode(_proved(Evidence.judgeInput.selector, c), (Evidence.Edge));
        if (g.depth != 0) {
            _requireInCaller(g, before, edge, source);
        } else {
            Proofs.requireContext(c.context, Proofs.between(before, afterwards));
            _requireInput(g.task, before, edge.k, source);
        }
        _judgeEdge(game, g, edge.n, edge.value, source.value);
    }

    /// @inheritdoc IDisputeGame
    function judgeOutput(
        uint256 game,
        bytes32 head,
        InstructionOpening calldata,
        Leaf calldata,
        Leaf calldata target,
        bytes32 before,
        bytes32 afterwards,
        bytes calldata
    ) external override {
        Record storage g = _challengerTurn(game, head, Phase.Frame);
        ClaimRecord storage c = _reached(g);
        Evidence.Edge memory edge = abi.decode(_proved(Evidence.judgeOutput.selector, c), (Evidence.Edge));
        if (g.depth != 0) {
            _requireInCaller(g, before, edge, target);
        } else {
            Proofs.requireContext(c.context, Proofs.between(before, afterwards));
            Proofs.requireLeaf(afterwards, _dockets[g.task].stateTensors, edge.k, target);
        }
        _judgeEdge(game, g, edge.n, target.value, edge.value);
    }

    /// @dev Both sides of an edge are the solver's words: unequal, it is wrong.
    function _judgeEdge(uint256 game, Record storage g, uint32 n, bytes32 claimed, bytes32 due) private {
        if (claimed == due) revert DisputeErrors.EdgeAgrees(due);
        emit EdgeJudged(game, n, claimed, due);
        _convict(game, g, Verdict.SolverFalse);
    }

    /// @dev Input k of a top frame: the state before the step, then the constants of the terms.
    function _requireInput(uint256 task, bytes32 before, uint32 k, Leaf calldata source) private view {
        uint32 stateTensors = _dockets[task].stateTensors;
        if (k < stateTensors) {
            Proofs.requireLeaf(before, stateTensors, k, source);
        } else {
            (bytes32 root, uint32 size) = MARKET.constantsOf(task);
            Proofs.requireLeaf(root, size, k - stateTensors, source);
        }
    }

    /// @dev The edge's other side in the caller's trace, whose size `selectCall` noted. Only the caller's key and the bytes of
    /// the call give the key of the frame.
    function _requireInCaller(
        Record storage g,
        bytes32 callerKey,
        Evidence.Edge memory edge,
        Leaf calldata leaf
    ) private view {
        Proofs.requireContext(g.claim, Proofs.calleeKey(callerKey, edge.call));
        ClaimRecord storage caller = _claims[callerKey];
        Proofs.requireLeaf(caller.root, caller.size, edge.callerLeaf, leaf);
    }
}
