// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Registration} from "../../src/types/Seats.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Registering, resigning and leaving as a verifier.
contract RegistrationTest is Deployment {
    // ------------------------------------------------------------------ register

    function testFuzz_register_locksStake_succeeds(uint8 level) public {
        level = uint8(bound(level, 0, 14));
        vm.expectEmit();
        emit IAuditBoard.Registered(rival, level, _offer());
        vm.prank(rival);
        board.register(level, _offer());
        assertEq(board.registered(), VERIFIERS + 1);
        uint256 stake = STAKE_UNIT << level;
        assertEq(vault.free(rival), FUNDS - stake);
        Registration memory entry = board.registrationOf(rival);
        assertEq(entry.account, rival);
        assertEq(entry.level, level);
        assertEq(entry.resignedAt, 0);
        assertEq(entry.freeSince, block.timestamp);
        assertFalse(entry.suspended);
        assertEq(abi.encode(entry.offer), abi.encode(_offer()));
        assertEq(_remaining(entry.lock), stake);
    }

    function test_register_level_reverts() public {
        token.mint(rival, STAKE_UNIT << 15);
        vm.startPrank(rival);
        vault.deposit(STAKE_UNIT << 15);
        _expectBounds("level", 16, 0, 15);
        board.register(16, _offer());
        board.register(15, _offer());
        vm.stopPrank();
    }

    /// @dev An account has one registration until it leaves, even after it resigned.
    function test_register_twice_reverts() public {
        vm.startPrank(verifiers[0]);
        bytes memory refusal = abi.encodeWithSelector(Refusals.AlreadyRegistered.selector, verifiers[0]);
        vm.expectRevert(refusal);
        board.register(1, _offer());
        board.resign();
        vm.expectRevert(refusal);
        board.register(1, _offer());
    }

    function test_register_notEnough_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotEnoughFree.selector, challenger, STAKE_UNIT, 0));
        vm.prank(challenger);
        board.register(0, _offer());
    }

    // ------------------------------------------------------------------ resign, leave

    function test_quit_afterUnbonding_succeeds() public {
        uint64 until = uint64(block.timestamp) + UNBONDING_PERIOD;
        vm.startPrank(verifiers[1]);
        vm.expectEmit();
        emit IAuditBoard.Resigned(verifiers[1], until);
        board.resign();
        assertEq(board.registered(), VERIFIERS - 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotRegistered.selector, verifiers[1]));
        board.resign();
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        board.quit();
        vm.warp(until + 1);
        vm.expectEmit();
        emit IAuditBoard.Left(verifiers[1]);
        board.quit();
        assertEq(vault.free(verifiers[1]), FUNDS);
        assertEq(board.registrationOf(verifiers[1]).account, address(0));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotRegistered.selector, verifiers[1]));
        board.quit();
        board.register(3, _offer());
        assertEq(board.registered(), VERIFIERS);
    }

    function test_quit_notResigned_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotResigned.selector, verifiers[0]));
        vm.prank(verifiers[0]);
        board.quit();
    }

    /// @dev A seat binds beyond the unbonding period, until it is released.
    function test_quit_withSeat_reverts() public {
        TaskId task = _drawn(1);
        address account = board.seatsOf(task)[0].account;
        vm.prank(account);
        board.resign();
        vm.warp(block.timestamp + UNBONDING_PERIOD + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.HasSeat.selector, account));
        vm.prank(account);
        board.quit();
        market.stall(task);
        board.release(task, 0);
        vm.prank(account);
        board.quit();
        assertEq(vault.free(account), FUNDS);
    }

    /// @dev The seat's fee is paid to an account that left before the task was closed.
    function test_quit_beforeItIsPaid_succeeds() public {
        TaskId task = _drawn(1);
        address account = board.seatsOf(task)[0].account;
        _attest(task, 0);
        vm.prank(account);
        board.resign();
        vm.warp(block.timestamp + UNBONDING_PERIOD + 1);
        market.stall(task);
        board.release(task, 0);
        vm.prank(account);
        board.quit();
        _endWindow(task);
        market.closeStalled(task);
        assertEq(vault.free(account), FUNDS + SEAT_FEE);
    }

    function test_resign_unregistered_reverts() public {
        bytes memory refusal = abi.encodeWithSelector(Refusals.NotRegistered.selector, rival);
        vm.startPrank(rival);
        vm.expectRevert(refusal);
        board.resign();
        vm.expectRevert(refusal);
        board.quit();
        vm.expectRevert(refusal);
        board.resume();
    }
}
