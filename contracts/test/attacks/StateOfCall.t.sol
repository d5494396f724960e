// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Proofs} from "../../src/libraries/Proofs.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Opcode, TypeCode} from "../../src/types/Instruction.sol";
import {InstructionOpening, Node} from "../../src/types/Openings.sol";
import {Play} from "../dispute/Play.sol";
import {StepProgram} from "../dispute/StepProgram.sol";

/// @title A call's 64 bytes offered as the pair of states around a step.
/// @notice The context of a top frame is keccak256(abi.encode(before, afterwards)), that of a callee
/// keccak256(call). A call with one operand and one result whose ranks add up to 4 has exactly 64 bytes, as
/// many as two states, and the last 32 are the callee's id. Taken as a state, that id has no tensors, so an
/// honest solver could not reveal its tree and would lose on time.
contract StateOfCallTest is Play {
    uint32 private constant CALL_NUMBER = 1;

    function setUp() public override {
        super.setUp();
        bytes memory matrix = abi.encodePacked(TypeCode.F32, uint8(2), uint32(20), uint32(15));
        bytes[] memory list = new bytes[](3);
        list[0] = abi.encodePacked(Opcode.INPUT, uint32(0), uint8(0), uint8(1), matrix, uint32(0));
        list[1] = abi.encodePacked(
            Opcode.CALL, uint32(1), uint8(1), uint32(0), matrix, uint8(1), matrix, callee.id
        );
        list[2] = abi.encodePacked(Opcode.OUTPUT, uint32(2), uint8(1), uint32(1), matrix, uint8(0), uint32(0));
        top = StepProgram.program(list, 2);
        topValues = [StepProgram.floats(StepProgram.ONE), StepProgram.floats(StepProgram.THREE)];
        calleeValues = topValues;
        before = [topValues[0], StepProgram.integer(1)];
        afterTensors = [topValues[1], StepProgram.integer(1)];
        _start();
    }

    function test_demand_stateInCallee_reverts() public {
        GameId id = _inTop();
        bytes memory call = top.instructions[CALL_NUMBER];
        assertEq(call.length, 64);
        bytes32 head = _head(id);
        InstructionOpening memory opened = _open(top, CALL_NUMBER);
        vm.prank(challenger);
        game.selectCall(id, head, opened);
        _expandTrace(Proofs.calleeKey(_topKey(), keccak256(call)), calleeRoots);

        (bytes32 before_, bytes32 afterwards) = abi.decode(call, (bytes32, bytes32));
        assertEq(afterwards, callee.id);
        Node[] memory nodes = new Node[](1);
        nodes[0] = Node(0, 2, afterwards, new bytes32[](0));
        head = _head(id);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoStates.selector));
        game.demand(id, head, IDisputeGame.Tree.State, _none(), before_, afterwards, nodes);
    }
}
