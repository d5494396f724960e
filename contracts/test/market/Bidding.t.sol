// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Bids} from "../../src/libraries/Bids.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IMarket} from "../harness/Production.sol";
import {Deployment} from "./Deployment.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";

/// @title Posting, bidding, assigning.
contract BiddingTest is Deployment {
    function test_announce_replaces_succeeds() public {
        vm.startPrank(solver);
        market.announce("http://127.0.0.1:1");
        vm.expectEmit();
        emit ITaskMarket.Announced(solver, "http://127.0.0.1:2");
        market.announce("http://127.0.0.1:2");
        assertEq(market.endpointOf(solver), "http://127.0.0.1:2");
    }

    function test_announce_tooLong_reverts() public {
        _expectBounds("url length", 257, 0, 256);
        market.announce(string(new bytes(257)));
    }

    // ------------------------------------------------------------------ post

    function test_post_locksEscrow_succeeds() public {
        Terms memory terms = _terms();
        vm.expectEmit();
        emit ITaskMarket.Posted(TaskId.wrap(1), submitter, terms.programId, terms.bundle);
        TaskId task = _post(terms);
        ITaskMarket.Task memory entry = market.taskOf(task);
        assertEq(task, TaskId.wrap(1));
        assertEq(market.tasks(), 1);
        assertEq(uint8(entry.status), uint8(ITaskMarket.Status.Bidding));
        assertEq(entry.submitter, submitter);
        assertEq(entry.bidsUntil, block.timestamp + terms.biddingPeriod);
        assertEq(_remaining(entry.escrow), _escrowOf(terms));
        assertEq(vault.free(submitter), FUNDS - _escrowOf(terms));
        assertEq(abi.encode(market.termsOf(task)), abi.encode(terms));
    }

    function test_post_whilePaused_reverts() public {
        vm.prank(pauser);
        market.pause();
        vm.expectRevert(Pausable.EnforcedPause.selector);
        _post();
        vm.prank(pauser);
        market.unpause();
        assertEq(_post(), TaskId.wrap(1));
    }

    function test_pause_byStranger_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, pauser, address(this)));
        market.pause();
    }

    /// @dev A pause stops new tasks only.
    function test_pause_runningTask_succeeds() public {
        TaskId task = _audited(BUDGET);
        vm.prank(pauser);
        market.pause();
        market.settle(task);
        assertEq(uint8(market.taskOf(task).status), uint8(ITaskMarket.Status.Settled));
    }

    function test_post_withoutVerifiers_reverts() public {
        for (uint256 i; i < verifiers.length; ++i) {
            vm.prank(verifiers[i]);
            board.resign();
        }
        _expectBounds("registered", 0, 1, type(uint32).max);
        _post();
    }

    function test_post_notEnoughFree_reverts() public {
        uint256 needed = _escrowOf(_terms());
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotEnoughFree.selector, challenger, needed, 0));
        vm.prank(challenger);
        market.post(_terms());
    }

    function test_post_unsetRoots_reverts() public {
        Terms memory terms = _terms();
        terms.programId = 0;
        _expectZero("programId", terms);
        terms = _terms();
        terms.constantsRoot = 0;
        _expectZero("constantsRoot", terms);
        terms = _terms();
        terms.initialState = 0;
        _expectZero("initialState", terms);
        terms = _terms();
        terms.bundleHash = 0;
        _expectZero("bundleHash", terms);
    }

    function test_post_programOutOfBounds_reverts() public {
        Terms memory terms = _terms();
        terms.constants = 0;
        _expectRefused("constants", 0, 1, 65_535, terms);
        terms = _terms();
        terms.stateTensors = 65_536;
        _expectRefused("stateTensors", 65_536, 1, 65_535, terms);
        terms = _terms();
        terms.segments = (1 << 20) + 1;
        _expectRefused("segments", (1 << 20) + 1, 1, 1 << 20, terms);
        terms = _terms();
        terms.segments = 0;
        _expectRefused("segments", 0, 1, 1 << 20, terms);
        terms = _terms();
        terms.segmentSteps = (1 << 16) + 1;
        _expectRefused("segmentSteps", (1 << 16) + 1, 1, 1 << 16, terms);
        terms = _terms();
        terms.stepOperations = 0;
        _expectRefused("stepOperations", 0, 1, type(uint64).max, terms);
        terms = _terms();
        terms.stateBytes = 0;
        // 4 MiB per second: four states within 200 seconds, and two within 50.
        _expectRefused("stateBytes", 0, 1, 25 << 22, terms);
        terms.stateBytes = (25 << 22) + 1;
        _expectRefused("stateBytes", terms.stateBytes, 1, 25 << 22, terms);
        terms.moveTime = 110;
        terms.stateBytes = (50 << 22) + 1;
        _expectRefused("stateBytes", terms.stateBytes, 1, 50 << 22, terms);
        terms = _terms();
        terms.arithmetic = 2;
        _expectRefused("arithmetic", 2, 1, 1, terms);
        terms = _terms();
        terms.thinning = 0;
        _expectRefused("thinning", 0, 1, 20, terms);
        terms.thinning = 32;
        _expectRefused("thinning", 32, 1, 20, terms);
        (terms.segmentSteps, terms.thinning) = (200, 128);
        _expectRefused("thinning", 128, 1, 64, terms);
        terms.thinning = 12;
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoPowerOfTwo.selector, "thinning", 12));
        _post(terms);
        terms.thinning = 64;
        _post(terms);
        terms = _terms();
        terms.bundle = "";
        _expectRefused("bundle length", 0, 1, 1024, terms);
    }

    function test_post_amountsOutOfBounds_reverts() public {
        Terms memory terms = _terms();
        terms.budget = 0;
        _expectRefused("budget", 0, 1, type(uint128).max, terms);
        terms = _terms();
        terms.delayPenalty = STAKE + 1;
        _expectRefused("delayPenalty", STAKE + 1, 0, STAKE, terms);
        terms = _terms();
        terms.restitution = BUDGET + 1;
        _expectRefused("restitution", BUDGET + 1, 0, BUDGET, terms);
    }

    function test_post_timesOutOfBounds_reverts() public {
        Terms memory terms = _terms();
        terms.biddingPeriod = 9;
        _expectRefused("biddingPeriod", 9, 10, 30 days, terms);
        terms = _terms();
        terms.extension = 9;
        _expectRefused("extension", 9, 10, terms.biddingPeriod, terms);
        terms = _terms();
        terms.extension = terms.biddingPeriod + 1;
        _expectRefused("extension", terms.extension, 10, terms.biddingPeriod, terms);
        terms = _terms();
        terms.trainingPeriod = 30 days + 1;
        _expectRefused("trainingPeriod", 30 days + 1, 10, 30 days, terms);
        terms = _terms();
        terms.attestPeriod = 9;
        // Eight draws, each with its delay of 40, fit into 2000.
        _expectRefused("attestPeriod", 9, 10, 210, terms);
        terms = _terms();
        terms.attestPeriod = 211;
        _expectRefused("attestPeriod", 211, 10, 210, terms);
        terms = _terms();
        // After the attestations there must be time for two moves: to commit, and to open the commitment.
        terms.challengePeriod = terms.attestPeriod + 9;
        _expectRefused("challengePeriod", terms.attestPeriod + 9, terms.attestPeriod + 10, 30 days, terms);
        terms = _terms();
        terms.clock = 4;
        _expectRefused("clock", 4, 5, 7 days, terms);
        terms = _terms();
        terms.clock = 7 days + 1;
        _expectRefused("clock", 7 days + 1, 5, 7 days, terms);
        terms = _terms();
        terms.replayAllowance = 30 days + 1;
        _expectRefused("replayAllowance", 30 days + 1, 0, 30 days, terms);
    }

    function test_post_auditOutOfBounds_reverts() public {
        Terms memory terms = _terms();
        terms.verifiers = 33;
        _expectRefused("verifiers", 33, 1, 32, terms);
        terms.verifiers = 0;
        _expectRefused("verifiers", 0, 1, 32, terms);
        terms = _terms();
        // At most as many segments as the task has, and at most 64.
        terms.segmentsPerVerifier = uint16(SEGMENTS) + 1;
        _expectRefused("segmentsPerVerifier", SEGMENTS + 1, 1, SEGMENTS, terms);
        terms.segmentsPerVerifier = 0;
        _expectRefused("segmentsPerVerifier", 0, 1, SEGMENTS, terms);
        (terms.segments, terms.segmentsPerVerifier) = (100, 65);
        _expectRefused("segmentsPerVerifier", 65, 1, 64, terms);
    }

    /// @dev The lock must cover what a silent account loses, and the highest registration level must cover
    /// the lock.
    function test_post_seatLockOutOfBounds_reverts() public {
        Terms memory terms = _terms();
        uint128 least = uint128(SEAT_FEE) + DRAW_FEE;
        uint128 most = uint128(STAKE_UNIT) << 15;
        terms.seatLock = least - 1;
        _expectRefused("seatLock", least - 1, least, most, terms);
        terms.seatLock = most + 1;
        _expectRefused("seatLock", most + 1, least, most, terms);
        terms.seatLock = most;
        _post(terms);
        terms.seatLock = least;
        _post(terms);
    }

    // ------------------------------------------------------------------ the beacon is alive

    function test_post_beaconShownADayAgo_succeeds() public {
        vm.warp(beacon.timeOf(beacon.latest()) + 1 days);
        vm.prank(submitter);
        market.post(_terms());
    }

    function test_post_staleBeacon_reverts() public {
        uint64 latest = beacon.latest();
        vm.warp(beacon.timeOf(latest) + 1 days + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.StaleBeacon.selector, latest, block.timestamp));
        vm.prank(submitter);
        market.post(_terms());
        _show();
        _post();
    }

    function test_post_beaconNeverShown_reverts() public {
        IBeacon silent = _newBeacon(_key(), START, PERIOD);
        IMarket other = _newMarket(vault, _newArbiter(), silent, pauser, _parameters());
        other.initialise(board, game, commitments, address(looks), address(juries));
        vm.expectRevert(abi.encodeWithSelector(Refusals.StaleBeacon.selector, 0, block.timestamp));
        other.post(_terms());
    }

    // ------------------------------------------------------------------ bid, assign

    function testFuzz_bid_lowerReplaces_succeeds(uint128 first, uint128 second) public {
        first = uint128(bound(first, 1, BUDGET));
        second = uint128(bound(second, 0, first - Bids.undercut(first, 0, 20)));
        TaskId task = _post();
        vm.prank(rival);
        market.bid(task, first);
        assertEq(vault.free(rival), FUNDS - 40 * UNIT);
        vm.expectEmit();
        emit ITaskMarket.BidPlaced(task, solver, second, market.taskOf(task).bidsUntil);
        vm.prank(solver);
        market.bid(task, second);
        assertEq(vault.free(rival), FUNDS);
        assertEq(vault.free(solver), FUNDS - 40 * UNIT);
        assertEq(market.taskOf(task).bidder, solver);
        assertEq(market.taskOf(task).price, second);
        assertEq(_remaining(market.taskOf(task).stake), 40 * UNIT);
    }

    function test_bid_aboveBudget_reverts() public {
        TaskId task = _post();
        _expectBounds("price", BUDGET + 1, 0, BUDGET);
        vm.prank(solver);
        market.bid(task, BUDGET + 1);
    }

    function test_bid_late_reverts() public {
        TaskId task = _post();
        uint64 until = market.taskOf(task).bidsUntil;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        vm.prank(solver);
        market.bid(task, 1);
    }

    function test_bid_withoutPenalty_reverts() public {
        TaskId task = _post();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotEnoughFree.selector, challenger, 40 * UNIT, 0));
        vm.prank(challenger);
        market.bid(task, 1);
    }

    /// @dev An account that underbids itself needs the penalty only once.
    function test_bid_ownAgain_succeeds() public {
        TaskId task = _post();
        vm.startPrank(solver);
        vault.withdraw(FUNDS - 40 * UNIT);
        market.bid(task, 2);
        market.bid(task, 1);
        assertEq(vault.free(solver), 0);
    }

    function test_bid_unknownTask_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.UnknownTask.selector, 1));
        market.bid(TaskId.wrap(1), 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.UnknownTask.selector, 0));
        market.bid(TaskId.wrap(0), 1);
    }

    function test_assign_bestBid_succeeds() public {
        TaskId task = _assigned(70 * UNIT);
        ITaskMarket.Task memory entry = market.taskOf(task);
        assertEq(uint8(entry.status), uint8(ITaskMarket.Status.Training));
        assertEq(entry.bidder, solver);
        assertEq(entry.trainUntil, entry.bidsUntil + _terms().trainingPeriod);
    }

    /// @dev The best bidder is not the solver before the task is assigned.
    function test_solverOf_whileBidding_isNobody_succeeds() public {
        TaskId task = _post();
        vm.prank(solver);
        market.bid(task, 70 * UNIT);
        assertEq(market.taskOf(task).bidder, solver);
        assertEq(market.solverOf(task), address(0));
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
        assertEq(market.solverOf(task), solver);
    }

    function test_assign_withoutBid_succeeds() public {
        TaskId task = _post();
        vm.warp(market.taskOf(task).bidsUntil + 1);
        vm.expectEmit();
        emit ITaskMarket.Refunded(task, _escrowOf(_terms()), 0);
        market.assign(task);
        assertEq(vault.free(submitter), FUNDS);
        assertEq(uint8(market.taskOf(task).status), uint8(ITaskMarket.Status.Refunded));
    }

    function test_assign_early_reverts() public {
        TaskId task = _post();
        uint64 until = market.taskOf(task).bidsUntil;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        market.assign(task);
    }

    function test_assign_twice_reverts() public {
        TaskId task = _assigned(1);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Training)
        );
        market.assign(task);
    }

    // ------------------------------------------------------------------ inside

    function _expectRefused(
        string memory field,
        uint256 value,
        uint256 least,
        uint256 most,
        Terms memory terms
    ) private {
        _expectBounds(field, value, least, most);
        _post(terms);
    }

    function _expectZero(string memory field, Terms memory terms) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.Zero.selector, field));
        _post(terms);
    }
}
