// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Evidence} from "../Evidence.sol";
import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {Proofs} from "../libraries/Proofs.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {GameId, TaskId} from "../types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf} from "../types/Openings.sol";
import {GameState} from "./GameState.sol";

/// @title The last move: one element, or one edge of a frame, is computed here (dispute.md sections 4 and 5).
/// @notice Different bits or roots convict the solver; where they are equal, the move reverts. If an inner
/// call fails (for lack of gas, for example), the move reverts; a failed call never decides a game.
abstract contract Judgments is GameState {
    /// @inheritdoc IDisputeGame
    function judge(
        GameId game,
        bytes32 head,
        InstructionOpening calldata,
        uint64 element,
        Leaf[] calldata,
        ChunkOpening[] calldata,
        Leaf calldata,
        ChunkOpening calldata
    ) external override {
        GameRecord storage record = _challengerTurn(game, head, Phase.Frame);
        ClaimRecord storage claim = _reached(record);
        (uint32 n, uint64 bits, uint64 computed) =
            abi.decode(_proved(Evidence.judge.selector, claim), (uint32, uint64, uint64));
        if (computed == bits) revert Refusals.ElementAgrees(bits);
        emit Judged(game, n, element, bits, computed);
        _convict(game, record, Verdict.SolverFalse);
    }

    /// @inheritdoc IDisputeGame
    function judgeInput(
        GameId game,
        bytes32 head,
        InstructionOpening calldata,
        Leaf calldata,
        Leaf calldata source,
        bytes32 before,
        bytes32 afterwards,
        bytes calldata
    ) external override {
        _judgeEdge(game, head, Evidence.judgeInput.selector, source, before, afterwards);
    }

    /// @inheritdoc IDisputeGame
    function judgeOutput(
        GameId game,
        bytes32 head,
        InstructionOpening calldata,
        Leaf calldata,
        Leaf calldata target,
        bytes32 before,
        bytes32 afterwards,
        bytes calldata
    ) external override {
        _judgeEdge(game, head, Evidence.judgeOutput.selector, target, before, afterwards);
    }

    /// @dev Each side of an edge is a root that the solver claimed or that the terms fix: if they differ, the
    /// solver is wrong. `other` is the side outside the frame.
    function _judgeEdge(
        GameId game,
        bytes32 head,
        bytes4 selector,
        Leaf calldata other,
        bytes32 before,
        bytes32 afterwards
    ) private {
        GameRecord storage record = _challengerTurn(game, head, Phase.Frame);
        Evidence.Edge memory edge = abi.decode(_proved(selector, _reached(record)), (Evidence.Edge));
        bool input = selector == Evidence.judgeInput.selector;
        if (record.depth != 0) {
            _requireInCaller(record, before, edge, other);
        } else {
            _requireStates(record, before, afterwards);
            (bytes32 root, uint32 size, uint32 k) = input
                ? _inputOf(_taskOf(record), before, edge.k)
                : (afterwards, _dockets[_taskOf(record)].stateTensors, edge.k);
            Proofs.requireLeaf(root, size, k, other);
        }
        if (edge.value == other.value) revert Refusals.EdgeAgrees(edge.value);
        (bytes32 claimed, bytes32 due) = input ? (edge.value, other.value) : (other.value, edge.value);
        emit EdgeJudged(game, edge.n, claimed, due);
        _convict(game, record, Verdict.SolverFalse);
    }

    /// @dev Where input k of a top frame is: in the state before the step or, after the state's tensors, in
    /// the constants of the terms.
    function _inputOf(TaskId task, bytes32 before, uint32 k)
        private
        view
        returns (bytes32 root, uint32 size, uint32 index)
    {
        uint32 stateTensors = _dockets[task].stateTensors;
        if (k < stateTensors) return (before, stateTensors, k);
        (root, size) = MARKET.constantsOf(task);
        return (root, size, k - stateTensors);
    }

    /// @dev Checks the edge's other side in the caller's trace, whose size `selectCall` recorded. Only the
    /// caller's key and the bytes of the call produce the key of the frame.
    function _requireInCaller(
        GameRecord storage record,
        bytes32 callerKey,
        Evidence.Edge memory edge,
        Leaf calldata leaf
    ) private view {
        Proofs.requireContext(record.claim, Proofs.calleeKey(callerKey, edge.call));
        ClaimRecord storage caller = _claims[callerKey];
        Proofs.requireLeaf(caller.root, caller.size, edge.callerLeaf, leaf);
    }
}
