// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommitments} from "../../src/interfaces/ICommitments.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Seated} from "./Seated.sol";

/// @title Commitments opened after a conviction: audit.md section 8.
contract OpenedLateTest is Seated {
    function setUp() public override {
        super.setUp();
        _begin();
    }

    function test_openLate_inTime_succeeds() public {
        uint256 had = _free(holders[0]);
        GameId id = _challengeBy(challenger, own[0]);
        vm.warp(game.gameOf(id).deadline);
        bytes32 salt = _commitFrom(0, own[0], holders[0]);
        assertEq(_free(holders[0]), had - BOND);
        _lapse(id);
        bytes32 commitment = _commitment(task, own[0], holders[0], salt);
        vm.warp(vm.getBlockTimestamp() + OPENING_PERIOD - 1);
        vm.expectEmit(address(commitments));
        emit ICommitments.OpenedLate(task, commitment, holders[0]);
        vm.expectEmit(address(commitments));
        emit ICommitments.Compensated(task, 0, holders[0], DUE);
        _openLate(0, own[0], holders[0], salt);
        assertEq(_free(holders[0]), had + DUE);
        // Only the bond of the game that convicted still counts.
        assertEq(commitments.held(task), 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotCommitted.selector, commitment));
        _openLate(0, own[0], holders[0], salt);
    }

    function test_openLate_withoutSeat_returnsTheBond_succeeds() public {
        uint256 had = _free(second);
        bytes32 salt = _late(NO_SEAT, own[0], second);
        _openLate(NO_SEAT, own[0], second, salt);
        assertEq(_free(second), had);
        assertEq(_stakeLeft(), STAKE - REWARD - RESTITUTION);
    }

    function test_openLate_unknownSegment_succeeds() public {
        uint256 had = _free(holders[2]);
        bytes32 salt = _late(2, UNKNOWN, holders[2]);
        _openLate(2, UNKNOWN, holders[2], salt);
        assertEq(_free(holders[2]), had + DUE);
    }

    /// @dev The bond of a commitment on a segment that the seat does not have is returned, but the seat is
    /// paid nothing.
    function test_openLate_segmentOfAnotherSeat_reverts() public {
        bytes32 salt = _late(0, own[1], holders[0]);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotItsSegment.selector, task, 0, own[1]));
        _openLate(0, own[1], holders[0], salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, holders[1], holders[0]));
        _openLate(1, own[1], holders[0], salt);
        uint256 had = _free(holders[0]);
        _openLate(NO_SEAT, own[1], holders[0], salt);
        assertEq(_free(holders[0]), had + BOND);
    }

    function test_openLate_byStranger_reverts() public {
        bytes32 salt = _late(NO_SEAT, own[0], second);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, holders[0], second));
        _openLate(0, own[0], second, salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), second));
        _openLate(SEATS, own[0], second, salt);
        bytes32 none = _commitment(task, own[0], anyone, salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotCommitted.selector, none));
        _openLate(NO_SEAT, own[0], anyone, salt);
    }

    /// @dev A seat that was already paid can get its second bond back only without naming the seat.
    function test_openLate_secondOfTheSeat_reverts() public {
        GameId id = _challengeBy(challenger, others);
        vm.warp(game.gameOf(id).deadline);
        bytes32 first = _commitFrom(0, own[0], holders[0]);
        bytes32 salt = _commitFrom(0, own[0], holders[0]);
        _lapse(id);
        _openLate(0, own[0], holders[0], first);
        _nothingOwed(0);
        _openLate(0, own[0], holders[0], salt);
        uint256 had = _free(holders[0]);
        _openLate(NO_SEAT, own[0], holders[0], salt);
        assertEq(_free(holders[0]), had + BOND);
    }

    function test_openLate_notConvicted_reverts() public {
        bytes32 salt = _commitFrom(0, own[0], holders[0]);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotConvicted.selector, task));
        _openLate(0, own[0], holders[0], salt);
    }

    /// @dev A commitment that is not opened in time loses its bond, even after a conviction.
    function test_openLate_afterTheOpeningPeriod_reverts() public {
        uint256 had = _free(holders[0]);
        GameId id = _challengeBy(challenger, own[0]);
        vm.warp(game.gameOf(id).deadline);
        uint64 until = uint64(vm.getBlockTimestamp()) + OPENING_PERIOD;
        bytes32 salt = _commitFrom(0, own[0], holders[0]);
        _lapse(id);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        _openLate(0, own[0], holders[0], salt);
        commitments.forfeit(holders[0], _commitment(task, own[0], holders[0], salt));
        assertEq(vault.burned(), BOND);
        assertEq(_free(holders[0]), had - BOND);
    }
}
