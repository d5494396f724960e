// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {Errors} from "../../src/libraries/Errors.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Registering and resigning as a verifier.
contract RegistrationTest is Deployment {
    function testFuzz_register_locksStake_succeeds(uint32 count) public {
        count = uint32(bound(count, 1, 255));
        vm.expectEmit();
        emit IAuditBoard.Registered(rival, count);
        vm.prank(rival);
        board.register(count);
        assertEq(board.liveSlots(), 6 + count);
        assertEq(board.liveVerifiers(), 4);
        assertEq(vault.free(rival), FUNDS - count * 50 * uint256(UNIT));
    }

    function test_register_nothing_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Errors.OutOfBounds.selector, "count", 1, 255, 0));
        vm.prank(rival);
        board.register(0);
    }

    function test_register_tooMany_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Errors.OutOfBounds.selector, "count", 1, 255, 256));
        vm.prank(rival);
        board.register(256);
    }

    function test_register_twice_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Errors.AlreadyRegistered.selector, verifiers[0]));
        vm.prank(verifiers[0]);
        board.register(1);
    }

    function test_register_notEnough_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Errors.NotEnoughFree.selector, challenger, 50 * UNIT, 0));
        vm.prank(challenger);
        board.register(1);
    }

    function test_resign_unbonds_succeeds() public {
        uint64 until = uint64(block.timestamp) + 1 days;
        vm.expectEmit();
        emit IAuditBoard.Resigned(verifiers[1], until);
        vm.prank(verifiers[1]);
        board.resign();
        assertEq(board.liveSlots(), 4);
        assertEq(board.liveVerifiers(), 2);
        // Its lock is the second one that the set-up made.
        vm.expectRevert(abi.encodeWithSelector(Errors.StillBonded.selector, 2, until));
        vault.finishUnbonding(2);
        vm.warp(until + 1);
        vault.finishUnbonding(2);
        assertEq(vault.free(verifiers[1]), FUNDS);
    }

    function test_resign_thenRegister_succeeds() public {
        vm.startPrank(verifiers[0]);
        board.resign();
        board.register(3);
        assertEq(board.liveSlots(), 7);
        board.resign();
        assertEq(board.liveSlots(), 4);
    }

    function test_resign_unregistered_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Errors.NotRegistered.selector, rival));
        vm.prank(rival);
        board.resign();
    }

    function test_snapshot_byStranger_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAllowed.selector, address(market), rival));
        vm.prank(rival);
        board.snapshot(TaskId.wrap(1));
    }
}
