// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Proofs} from "../../src/libraries/Proofs.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Judging} from "./Judging.sol";
import {StepProgram} from "./StepProgram.sol";

/// @title Judging the edges of frames: inputs from the state, from the constants and from the caller; outputs
/// to the state and to the caller.
contract EdgesTest is Judging {
    // ------------------------------------------------------------------ inputs

    function test_judgeInput_notTheState_convicts_succeeds() public {
        topValues[1] = StepProgram.integer(6);
        _inputConvicts(1);
    }

    function test_judgeInput_notTheConstant_convicts_succeeds() public {
        topValues[2] = StepProgram.floats(StepProgram.THREE);
        _inputConvicts(2);
    }

    /// @dev Attack 55: a frame whose inputs are not the caller's operands.
    function test_judgeInput_notTheCallersOperand_convicts_succeeds() public {
        calleeValues[1] = StepProgram.floats(StepProgram.THREE);
        _start();
        GameId id = _inCallee();
        uint256 free = _free(challenger);
        // The frame states an input, the caller says what it is.
        vm.expectEmit(address(game));
        emit IDisputeGame.EdgeJudged(id, 1, calleeRoots[1], topRoots[2]);
        _judgeInput(id, _calleeInput(1));
        _assertConvicted(id, free);
    }

    function test_judgeInput_rightEdges_reverts() public {
        _start();
        GameId id = _inTop();
        for (uint32 k; k < 3; ++k) {
            _inputReverts(id, _topInput(k), abi.encodeWithSelector(Refusals.EdgeAgrees.selector, topRoots[k]));
        }
        _selectCall(id);
        _expandCallee();
        for (uint32 k; k < 2; ++k) {
            _inputReverts(
                id, _calleeInput(k), abi.encodeWithSelector(Refusals.EdgeAgrees.selector, calleeRoots[k])
            );
        }
    }

    function test_judgeInput_anotherSource_reverts() public {
        _start();
        GameId id = _inTop();
        EdgeJudgment memory e = _topInput(0);
        e.other = _topInput(1).other;
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.judgeInput(id, head, e.instruction, e.value, e.other, e.before, e.afterwards, e.call);
    }

    function test_judgeInput_anotherState_reverts() public {
        _start();
        GameId id = _inTop();
        EdgeJudgment memory e = _topInput(0);
        (e.before, e.afterwards) = (e.afterwards, e.before);
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongContext.selector);
        game.judgeInput(id, head, e.instruction, e.value, e.other, e.before, e.afterwards, e.call);
    }

    function test_judgeInput_anotherCall_reverts() public {
        _start();
        GameId id = _inCallee();
        EdgeJudgment memory e = _calleeInput(0);
        bytes[2] memory calls = [bytes(""), top.instructions[6]];
        for (uint256 k; k < 2; ++k) {
            e.call = calls[k];
            _inputReverts(
                id,
                e,
                abi.encodeWithSelector(
                    Refusals.WrongContext.selector,
                    game.gameOf(id).claim,
                    Proofs.calleeKey(_topKey(), keccak256(calls[k]))
                )
            );
        }
    }

    /// @dev Another claim offered as the caller's: none, the step tree, whose root might suit the challenger
    /// better, or the frame itself.
    function test_judgeInput_anotherCaller_reverts() public {
        _start();
        GameId id = _inCallee();
        EdgeJudgment memory e = _calleeInput(0);
        bytes32 key = game.gameOf(id).claim;
        bytes32[3] memory callers = [bytes32(0), _stepsKey(), key];
        for (uint256 k; k < 3; ++k) {
            e.before = callers[k];
            _inputReverts(
                id,
                e,
                abi.encodeWithSelector(
                    Refusals.WrongContext.selector, key, Proofs.calleeKey(callers[k], keccak256(e.call))
                )
            );
        }
    }

    function test_judgeInput_noInput_reverts() public {
        _start();
        GameId id = _inTop();
        EdgeJudgment memory e = _topInput(0);
        e.instruction = _open(top, 4);
        _inputReverts(id, e, abi.encodeWithSelector(Refusals.WrongOpcode.selector, 0x0001, 0x0002));
    }

    // ------------------------------------------------------------------ outputs

    function test_judgeOutput_notTheState_convicts_succeeds() public {
        // The trace is honest; the state after the step is not: it contains an old tensor.
        afterTensors[0] = topValues[0];
        _start();
        GameId id = _inTop();
        uint256 free = _free(challenger);
        _judgeOutput(id, _topOutput(0));
        _assertConvicted(id, free);
    }

    function test_judgeOutput_notTheCallersResult_convicts_succeeds() public {
        // The callee computed correctly; the caller's trace says otherwise.
        topValues[3] = StepProgram.floats(StepProgram.TWO);
        _start();
        GameId id = _inCallee();
        uint256 free = _free(challenger);
        // The caller states a result, the frame says what it is.
        vm.expectEmit(address(game));
        emit IDisputeGame.EdgeJudged(id, 3, topRoots[3], calleeRoots[2]);
        _judgeOutput(id, _calleeOutput());
        _assertConvicted(id, free);
    }

    function test_judgeOutput_rightEdges_reverts() public {
        _start();
        GameId id = _inTop();
        uint256[2] memory leaves = [uint256(3), 6];
        for (uint32 k; k < 2; ++k) {
            _outputReverts(
                id, _topOutput(k), abi.encodeWithSelector(Refusals.EdgeAgrees.selector, topRoots[leaves[k]])
            );
        }
        _selectCall(id);
        _expandCallee();
        _outputReverts(
            id, _calleeOutput(), abi.encodeWithSelector(Refusals.EdgeAgrees.selector, calleeRoots[2])
        );
    }

    function test_judgeOutput_anotherValue_reverts() public {
        _start();
        GameId id = _inTop();
        EdgeJudgment memory e = _topOutput(0);
        e.value = _leaf(topRoots, 2);
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.judgeOutput(id, head, e.instruction, e.value, e.other, e.before, e.afterwards, e.call);
    }

    function test_judgeOutput_inputInstruction_reverts() public {
        _start();
        GameId id = _inTop();
        EdgeJudgment memory e = _topOutput(0);
        e.instruction = _open(top, 0);
        _outputReverts(id, e, abi.encodeWithSelector(Refusals.WrongOpcode.selector, 0x0003, 0x0001));
    }

    // ------------------------------------------------------------------ parts

    function _inputConvicts(uint32 k) private {
        _start();
        GameId id = _inTop();
        uint256 free = _free(challenger);
        _judgeInput(id, _topInput(k));
        _assertConvicted(id, free);
    }

    /// @dev Inputs 0 and 1 come from the state, 2 from the constants.
    function _topInput(uint32 k) private view returns (EdgeJudgment memory e) {
        e.instruction = _open(top, k);
        e.value = _leaf(topRoots, k);
        e.other = k < 2 ? _leaf(StepProgram.roots(before), k) : _leaf(StepProgram.roots(constants), k - 2);
        (e.before, e.afterwards) = (steps[0], steps[1]);
    }

    function _topOutput(uint32 k) private view returns (EdgeJudgment memory e) {
        e.instruction = _open(top, 7 + k);
        e.value = _leaf(topRoots, k == 0 ? 3 : 6);
        e.other = _leaf(StepProgram.roots(afterTensors), k);
        (e.before, e.afterwards) = (steps[0], steps[1]);
    }

    /// @dev The call's operands are leaves 0 and 2 of the caller.
    function _calleeInput(uint32 k) private view returns (EdgeJudgment memory e) {
        e.instruction = _open(callee, k);
        e.value = _leaf(calleeRoots, k);
        e.other = _leaf(topRoots, 2 * k);
        e.before = _topKey();
        e.call = top.instructions[3];
    }

    function _calleeOutput() private view returns (EdgeJudgment memory e) {
        e.instruction = _open(callee, 3);
        e.value = _leaf(calleeRoots, 2);
        e.other = _leaf(topRoots, 3);
        e.before = _topKey();
        e.call = top.instructions[3];
    }

    function _inputReverts(GameId id, EdgeJudgment memory e, bytes memory reason) private {
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectRevert(reason);
        game.judgeInput(id, head, e.instruction, e.value, e.other, e.before, e.afterwards, e.call);
    }

    function _outputReverts(GameId id, EdgeJudgment memory e, bytes memory reason) private {
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectRevert(reason);
        game.judgeOutput(id, head, e.instruction, e.value, e.other, e.before, e.afterwards, e.call);
    }
}
