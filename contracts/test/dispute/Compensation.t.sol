// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommitments} from "../../src/interfaces/ICommitments.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Seated} from "./Seated.sol";

/// @title How a convicted solver's stake is distributed: audit.md section 8.
contract CompensationTest is Seated {
    function setUp() public override {
        super.setUp();
        _begin();
    }

    // ------------------------------------------------------------------ the conviction itself

    function test_timeOut_pays_rewardAndRestitution_succeeds() public {
        (uint256 had, uint256 due) = (_free(challenger), _free(submitter) + RESTITUTION + _escrow());
        _convictOn(others, challenger);
        assertEq(_free(challenger), had + REWARD);
        assertEq(_free(submitter), due);
        assertEq(_stakeLeft(), STAKE - REWARD - RESTITUTION);
        assertEq(vault.burned(), 0);
        (uint64 time, SegmentIndex segment) = game.convictionOf(task);
        assertEq(time, vm.getBlockTimestamp());
        assertEq(segment, others);
        assertEq(commitments.claimsUntil(task), time + OPENING_PERIOD + STALL_PERIOD);
    }

    /// @dev A party that trained the stalled task again gets the retrainer's reward.
    function test_timeOut_unpaid_paysTheRetrainer_succeeds() public {
        vm.warp(vm.getBlockTimestamp() + STALL_PERIOD + 1);
        market.stall(task);
        uint256 had = _free(challenger);
        _convictOn(others, challenger);
        assertEq(_free(challenger), had + RETRAIN_REWARD);
        assertEq(_stakeLeft(), STAKE - RETRAIN_REWARD - RESTITUTION);
    }

    // ------------------------------------------------------------------ seats that spoke up

    /// @dev The seat that convicts gets the reward, plus what every seat that spoke up gets.
    function test_compensate_theConvictingGame_succeeds() public {
        uint256 had = _free(holders[0]);
        GameId id = _convictOn(own[0], holders[0]);
        vm.expectEmit(address(commitments));
        emit ICommitments.Compensated(task, 0, holders[0], DUE);
        commitments.compensate(task, 0, id);
        assertEq(_free(holders[0]), had + REWARD + DUE);
    }

    /// @dev Each of two seats has a game on its own segment, while another segment is convicted; only one of
    /// them attested.
    function test_compensate_mootGameElsewhere_succeeds() public {
        GameId[2] memory ids = [_challengeBy(holders[0], own[0]), _challengeBy(holders[1], own[1])];
        _attest(0);
        _convictOn(others, challenger);
        for (uint8 seat; seat < 2; ++seat) {
            uint256 had = _free(holders[seat]);
            if (seat == 0) game.closeMoot(ids[seat]);
            vm.prank(anyone);
            commitments.compensate(task, seat, ids[seat]);
            if (seat == 1) game.closeMoot(ids[seat]);
            assertEq(_free(holders[seat]), had + BOND + DUE);
        }
        assertEq(_free(anyone), 0);
    }

    /// @dev An accomplice convicts on the seat's segment and has priority: the seat still gets its cost and
    /// its fee.
    function test_compensate_accompliceFirst_succeeds() public {
        bytes32 salt = _commit(task, own[0], challenger);
        GameId id = _challengeBy(holders[0], own[0]);
        (Leaf memory first, Leaf memory last) = _around(own[0]);
        vm.prank(challenger);
        _lapse(game.challenge(task, own[0], salt, first, last));
        uint256 had = _free(holders[0]);
        commitments.compensate(task, 0, id);
        assertEq(_free(holders[0]), had + DUE);
    }

    function test_compensate_blindGame_succeeds() public {
        GameId id = _openBlind(holders[2]);
        _convictOn(own[0], challenger);
        commitments.compensate(task, 2, id);
        assertEq(_stakeLeft(), STAKE - REWARD - RESTITUTION - DUE);
    }

    function test_compensate_blindGameThatSelected_succeeds() public {
        GameId[2] memory ids = [_openBlind(holders[1]), _openBlind(holders[2])];
        _select(ids[0], own[1], holders[1]);
        _select(ids[1], others, holders[2]);
        _convictOn(own[0], challenger);
        commitments.compensate(task, 1, ids[0]);
        _notOfSeat(2, ids[1]);
    }

    function test_compensate_afterPayFee_paysTheCost_succeeds() public {
        GameId id = _challengeBy(holders[1], own[1]);
        _attest(1);
        _convictOn(own[0], challenger);
        uint256 had = _free(holders[1]);
        commitments.payFee(task, 1);
        assertEq(_free(holders[1]), had + SEAT_FEE);
        vm.expectEmit(address(commitments));
        emit ICommitments.Compensated(task, 1, holders[1], GAME_COST);
        commitments.compensate(task, 1, id);
        assertEq(_free(holders[1]), had + DUE);
        _nothingOwed(1);
        commitments.compensate(task, 1, id);
        _nothingOwed(1);
        commitments.payFee(task, 1);
    }

    /// @dev A second game of the seat earns nothing more.
    function test_compensate_twice_reverts() public {
        GameId first = _challengeBy(holders[0], own[0]);
        GameId next = _challengeBy(holders[0], own[0]);
        _convictOn(others, challenger);
        commitments.compensate(task, 0, first);
        _nothingOwed(0);
        commitments.compensate(task, 0, first);
        _nothingOwed(0);
        commitments.compensate(task, 0, next);
    }

    function test_compensate_anothersGame_reverts() public {
        GameId stranger = _challengeBy(second, own[0]);
        GameId neighbour = _challengeBy(holders[1], own[1]);
        GameId elsewhere = _challengeBy(holders[0], own[1]);
        _convictOn(others, challenger);
        _notOfSeat(0, stranger);
        _notOfSeat(0, neighbour);
        _notOfSeat(0, elsewhere);
        _notOfSeat(1, elsewhere);
        _notOfSeat(0, GameId.wrap(0));
        _notOfSeat(0, GameId.wrap(100));
        // Seats that do not exist.
        _notOfSeat(SEATS, GameId.wrap(100));
        _notOfSeat(SEATS, neighbour);
        _notOfSeat(NO_SEAT, GameId.wrap(100));
    }

    /// @dev A seat that opens a game and abandons it has not spoken up.
    function test_compensate_dismissedGame_reverts() public {
        GameId id = _dismissed(own[0], holders[0]);
        _convictOn(others, challenger);
        _notOfSeat(0, id);
    }

    function test_compensate_gameOfAnotherTask_reverts() public {
        TaskId first = task;
        task = _submitted(top.id, keccak256("constants"), checkpoints);
        GameId id = _challengeBy(holders[0], own[0]);
        task = first;
        _convictOn(others, challenger);
        _notOfSeat(0, id);
    }

    function test_compensate_notConvicted_reverts() public {
        GameId id = _challengeBy(holders[0], own[0]);
        bytes memory reason = abi.encodeWithSelector(Refusals.NotConvicted.selector, task);
        vm.expectRevert(reason);
        commitments.compensate(task, 0, id);
        vm.expectRevert(reason);
        commitments.payFee(task, 0);
        vm.expectRevert(reason);
        commitments.claimsUntil(task);
    }

    // ------------------------------------------------------------------ seats that attested

    function test_payFee_otherSegments_succeeds() public {
        _attest(0);
        _attest(1);
        _convictOn(own[0], challenger);
        uint256 had = _free(holders[1]);
        vm.prank(anyone);
        commitments.payFee(task, 1);
        assertEq(_free(holders[1]), had + SEAT_FEE);
        _nothingOwed(1);
        commitments.payFee(task, 1);
        // It attested the false segment and did not speak up.
        _nothingOwed(0);
        commitments.payFee(task, 0);
        // It did not attest.
        _nothingOwed(2);
        commitments.payFee(task, 2);
        _nothingOwed(SEATS);
        commitments.payFee(task, SEATS);
        _nothingOwed(NO_SEAT);
        commitments.payFee(task, NO_SEAT);
    }

    /// @dev A seat that attested the false segment and has a game on it is paid.
    function test_payFee_falseSegmentButSpokeUp_isCompensated_succeeds() public {
        GameId id = _challengeBy(holders[0], own[0]);
        _attest(0);
        _convictOn(own[0], challenger);
        _nothingOwed(0);
        commitments.payFee(task, 0);
        commitments.compensate(task, 0, id);
        assertEq(_stakeLeft(), STAKE - REWARD - RESTITUTION - DUE);
    }

    /// @dev No segment was found false, so no attestation was wrong.
    function test_payFee_convictedBlind_everyAttestedSeat_succeeds() public {
        _attest(0);
        _attest(1);
        _convictBlind();
        (, SegmentIndex segment) = game.convictionOf(task);
        assertEq(segment, SegmentIndex.wrap(0));
        commitments.payFee(task, 0);
        commitments.payFee(task, 1);
        _nothingOwed(2);
        commitments.payFee(task, 2);
        assertEq(_stakeLeft(), STAKE - REWARD - RESTITUTION - 2 * SEAT_FEE);
    }

    // ------------------------------------------------------------------ the end of claims

    function test_claims_inTheLastSecond_succeeds() public {
        GameId id = _challengeBy(holders[0], own[0]);
        _attest(1);
        _convictOn(others, challenger);
        vm.warp(commitments.claimsUntil(task));
        commitments.compensate(task, 0, id);
        commitments.payFee(task, 1);
    }

    function test_claims_late_reverts() public {
        GameId id = _challengeBy(holders[0], own[0]);
        _attest(1);
        bytes32 salt = _late(0, own[0], holders[0]);
        uint64 until = commitments.claimsUntil(task);
        vm.warp(until + 1);
        bytes memory late = abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1);
        vm.expectRevert(late);
        commitments.compensate(task, 0, id);
        vm.expectRevert(late);
        commitments.payFee(task, 1);
        vm.expectRevert(late);
        _openLate(0, own[0], holders[0], salt);
        vm.expectEmit(address(market));
        emit ITaskMarket.RestBurned(task, STAKE - REWARD - RESTITUTION);
        market.burnRest(task);
        assertEq(vault.burned(), STAKE - REWARD - RESTITUTION);
        // The bond of a moot game can be returned at any time.
        uint256 had = _free(holders[0]);
        game.closeMoot(id);
        assertEq(_free(holders[0]), had + BOND);
    }

    function test_burnRest_early_reverts() public {
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Submitted)
        );
        market.burnRest(task);
        _convictOn(others, challenger);
        uint64 until = commitments.claimsUntil(task);
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        market.burnRest(task);
        vm.warp(until + 1);
        market.burnRest(task);
        uint256 burned = vault.burned();
        market.burnRest(task);
        assertEq(vault.burned(), burned);
    }

    // ------------------------------------------------------------------ inside

    function _select(GameId id, SegmentIndex segment, address who) private {
        (Leaf memory first, Leaf memory last) = _around(segment);
        bytes32 head = _head(id);
        vm.prank(who);
        game.selectSegment(id, head, segment, first, last);
    }

    function _escrow() private view returns (uint256 remaining) {
        (,, remaining) = vault.lockOf(market.taskOf(task).escrow);
    }

    function _notOfSeat(uint8 seat, GameId id) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotOfSeat.selector, task, seat, id));
        commitments.compensate(task, seat, id);
    }
}
