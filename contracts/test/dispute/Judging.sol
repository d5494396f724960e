// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {GameId} from "../../src/types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf} from "../../src/types/Openings.sol";
import {Play} from "./Play.sol";

/// @title The challenger's last moves; a test may alter each part before it is sent.
abstract contract Judging is Play {
    struct ElementJudgment {
        InstructionOpening instruction;
        uint64 element;
        Leaf[] operands;
        ChunkOpening[] chunks;
        Leaf value;
        ChunkOpening claimed;
    }

    struct EdgeJudgment {
        InstructionOpening instruction;
        Leaf value;
        Leaf other;
        bytes32 before;
        bytes32 afterwards;
        bytes call;
    }

    /// @dev `add` of the callee: x + c, an element of the frame's f32 [300].
    function _calleeAdd(uint64 element) internal view returns (ElementJudgment memory j) {
        uint32 index = uint32(element / 256);
        j.instruction = _open(callee, 2);
        j.element = element;
        j.operands = new Leaf[](2);
        (j.operands[0], j.operands[1]) = (_beside(calleeRoots, 2, 0), _beside(calleeRoots, 2, 1));
        j.chunks = new ChunkOpening[](2);
        (j.chunks[0], j.chunks[1]) = (_chunk(0, calleeValues[0], index), _chunk(1, calleeValues[1], index));
        j.value = _leaf(calleeRoots, 2);
        j.claimed = _chunk(0, calleeValues[2], index);
    }

    /// @dev `constant` of the top frame.
    function _topConstant(uint64 element) internal view returns (ElementJudgment memory j) {
        j.instruction = _open(top, 4);
        j.element = element;
        j.value = _leaf(topRoots, 4);
        j.claimed = _chunk(0, topValues[4], uint32(element / 128));
    }

    function _judge(GameId id, ElementJudgment memory j) internal {
        bytes32 head = _head(id);
        vm.prank(challenger);
        game.judge(id, head, j.instruction, j.element, j.operands, j.chunks, j.value, j.claimed);
    }

    function _judgeReverts(GameId id, ElementJudgment memory j, bytes memory reason) internal {
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectRevert(reason);
        game.judge(id, head, j.instruction, j.element, j.operands, j.chunks, j.value, j.claimed);
    }

    function _judgeInput(GameId id, EdgeJudgment memory e) internal {
        bytes32 head = _head(id);
        vm.prank(challenger);
        game.judgeInput(id, head, e.instruction, e.value, e.other, e.before, e.afterwards, e.call);
    }

    function _judgeOutput(GameId id, EdgeJudgment memory e) internal {
        bytes32 head = _head(id);
        vm.prank(challenger);
        game.judgeOutput(id, head, e.instruction, e.value, e.other, e.before, e.afterwards, e.call);
    }

    /// @dev Checks that this game convicted the solver: bond returned, reward paid, task slashed.
    function _assertConvicted(GameId id, uint256 freeBefore) internal view {
        _assertVerdict(id, IDisputeGame.Verdict.SolverFalse);
        assertEq(_free(challenger), freeBefore + BOND + REWARD, "bond and reward");
        assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Slashed), "task");
        assertEq(market.taskOf(task).openGames, 0, "open games");
    }
}
