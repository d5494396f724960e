// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Offer} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Eligibility for a draw at every bound: one candidate for one seat.
contract EligibleTest is Deployment {
    address private candidate;

    function setUp() public override {
        super.setUp();
        for (uint256 i; i < VERIFIERS; ++i) {
            vm.prank(verifiers[i]);
            board.resign();
        }
        candidate = makeAddr("candidate");
        _fund(candidate);
    }

    // ------------------------------------------------------------------ what it offers

    /// @dev The terms require 20 x 2 x 10^6 operations within 200 seconds, states of 10^5 bytes and a lock of
    /// 40. They pay 4 for the seat and bind it for 400 seconds.
    function test_draw_offerAtTheBound_succeeds() public {
        _register(1, _just());
        _assertDrawn(_terms(), true);
    }

    function test_draw_tooSlow_succeeds() public {
        Offer memory offer = _just();
        --offer.speed;
        _register(1, offer);
        _assertDrawn(_terms(), false);
    }

    function test_draw_tooManyBytes_succeeds() public {
        Offer memory offer = _just();
        --offer.stateBytes;
        _register(1, offer);
        _assertDrawn(_terms(), false);
    }

    function test_draw_tooGreatALock_succeeds() public {
        Offer memory offer = _just();
        --offer.lock;
        _register(1, offer);
        _assertDrawn(_terms(), false);
    }

    function test_draw_tooSmallAFee_succeeds() public {
        Offer memory offer = _just();
        ++offer.fee;
        _register(1, offer);
        _assertDrawn(_terms(), false);
    }

    function test_draw_tooSmallASeatFee_succeeds() public {
        Offer memory offer = _just();
        ++offer.seatFee;
        _register(1, offer);
        _assertDrawn(_terms(), false);
    }

    function test_draw_tooLongAPeriod_succeeds() public {
        Offer memory offer = _just();
        --offer.period;
        _register(1, offer);
        _assertDrawn(_terms(), false);
    }

    // ------------------------------------------------------------------ what looks add

    /// @dev A look pays one segment's fee, 2, and binds like a seat. The four levels have 200 seconds each.
    /// Both segments are replayed within a move time of 50.
    function test_draw_offerAtTheBoundWithLooks_succeeds() public {
        _register(1, _justWithLooks());
        _assertDrawn(_looked(), true);
    }

    function test_draw_tooSlowForAMove_succeeds() public {
        Offer memory offer = _justWithLooks();
        --offer.speed;
        _register(1, offer);
        _assertDrawn(_looked(), false);
    }

    function test_draw_tooSmallALooksFee_succeeds() public {
        Offer memory offer = _justWithLooks();
        ++offer.seatFee;
        _register(1, offer);
        _assertDrawn(_looked(), false);
    }

    function test_draw_tooLongAPeriodWithLooks_succeeds() public {
        Offer memory offer = _justWithLooks();
        --offer.period;
        _register(1, offer);
        _assertDrawn(_looked(), false);
    }

    /// @dev No product overflows for any terms and offers.
    function test_draw_greatestNumbers_succeeds() public {
        (uint112 fee, uint32 period) = (type(uint112).max, type(uint32).max);
        _register(15, Offer(type(uint64).max, type(uint64).max, type(uint128).max, fee, fee, period));
        Terms memory terms = _terms();
        terms.stepOperations = type(uint64).max;
        terms.segmentSteps = 1 << 16;
        _assertDrawn(terms, false);
        terms.stepOperations = 1;
        (terms.segmentSteps, terms.thinning) = (1, 1);
        // A connection of 4 MiB per second carries two such states in 50 seconds.
        terms.stateBytes = 25 << 22;
        _assertDrawn(terms, false);
    }

    /// @dev A level whose stake is exactly the seat's lock is enough.
    function test_draw_levelAtTheBound_succeeds() public {
        _register(1, _offer());
        Terms memory terms = _terms();
        terms.seatLock = 2 * uint128(STAKE_UNIT);
        _assertDrawn(terms, true);
    }

    function test_draw_levelTooLow_succeeds() public {
        Offer memory offer = _offer();
        offer.lock = type(uint128).max;
        _register(1, offer);
        Terms memory terms = _terms();
        terms.seatLock = 2 * uint128(STAKE_UNIT) + 1;
        _assertDrawn(terms, false);
    }

    // ------------------------------------------------------------------ when it resigned

    function test_draw_resignedBeforeTheRoundWasFixed_succeeds() public {
        _register(1, _offer());
        _assertResigned(-1, false);
    }

    function test_draw_resignedAsTheRoundWasFixed_succeeds() public {
        _register(1, _offer());
        _assertResigned(0, true);
    }

    function test_draw_resignedAfterTheRoundWasFixed_succeeds() public {
        _register(1, _offer());
        _assertResigned(1, true);
    }

    // ------------------------------------------------------------------ since when it is free

    function test_draw_freedBeforeTheRoundWasFixed_succeeds() public {
        _register(1, _offer());
        _assertFreed(-1, true);
    }

    function test_draw_freedAsTheRoundWasFixed_succeeds() public {
        _register(1, _offer());
        _assertFreed(0, false);
    }

    function test_draw_freedAfterTheRoundWasFixed_succeeds() public {
        _register(1, _offer());
        _assertFreed(1, false);
    }

    function test_draw_bound_succeeds() public {
        _register(1, _offer());
        TaskId task = _one(_terms());
        _draw(task);
        assertEq(board.seatsOf(task)[0].account, candidate);
        _assertDrawn(_terms(), false);
    }

    /// @dev A silent account is suspended and is not drawn; once it has resumed, it can be drawn again.
    function test_draw_suspended_succeeds() public {
        _register(1, _offer());
        TaskId task = _one(_terms());
        _draw(task);
        _silence(task);
        board.redraw(task);
        _draw(task);
        assertEq(board.seatsOf(task)[0].account, address(0));
        _assertDrawn(_terms(), false);
        vm.prank(candidate);
        board.resume();
        vm.warp(vm.getBlockTimestamp() + 1);
        _assertDrawn(_terms(), true);
    }

    /// @dev An account that has left is not drawn, however late the draw is executed.
    function test_draw_left_succeeds() public {
        _register(1, _offer());
        TaskId task = _one(_terms());
        vm.prank(candidate);
        board.resign();
        vm.warp(vm.getBlockTimestamp() + UNBONDING_PERIOD + 1);
        vm.prank(candidate);
        board.quit();
        _draw(task);
        assertEq(board.seatsOf(task)[0].account, address(0));
        assertEq(vault.free(candidate), FUNDS + SEAT_STAKE);
    }

    // ------------------------------------------------------------------ inside

    /// @dev An offer that accepts a seat of `_terms()`, but none that asks for more or pays less.
    function _just() private pure returns (Offer memory) {
        return Offer({
            speed: 2e5, stateBytes: 1e5, lock: 40 * UNIT, fee: 100e18, seatFee: uint112(SEAT_FEE), period: 400
        });
    }

    function _justWithLooks() private pure returns (Offer memory offer) {
        offer = _just();
        (offer.speed, offer.seatFee, offer.period) = (8e5, uint112(FEE), 400 + 4 * 200);
    }

    function _looked() private view returns (Terms memory terms) {
        terms = _terms();
        terms.lookChance = 1;
    }

    function _register(uint8 level, Offer memory offer) private {
        token.mint(candidate, STAKE_UNIT << level);
        vm.startPrank(candidate);
        vault.deposit(STAKE_UNIT << level);
        board.register(level, offer);
        vm.stopPrank();
    }

    /// @dev A submitted task with one seat.
    function _one(Terms memory terms) private returns (TaskId task) {
        terms.verifiers = 1;
        return _submitted(terms, 1);
    }

    function _assertDrawn(Terms memory terms, bool drawn) private {
        TaskId task = _one(terms);
        _draw(task);
        assertEq(board.seatsOf(task)[0].account, drawn ? candidate : address(0));
    }

    /// @dev Checks whether an account is drawn that resigns `after_` seconds after the round is fixed (if
    /// negative, before it).
    function _assertResigned(int256 after_, bool drawn) private {
        Terms memory terms = _terms();
        terms.verifiers = 1;
        TaskId task = _assigned(terms, 1);
        uint256 time = vm.getBlockTimestamp() + 10;
        if (after_ < 0) _resign(time - uint256(-after_));
        vm.warp(time);
        _submit(task);
        if (after_ >= 0) _resign(time + uint256(after_));
        _draw(task);
        assertEq(board.seatsOf(task)[0].account, drawn ? candidate : address(0));
    }

    function _resign(uint256 time) private {
        vm.warp(time);
        vm.prank(candidate);
        board.resign();
    }

    /// @dev Checks whether an account is drawn whose seat in another task is released `after_` seconds after
    /// the round is fixed (if negative, before it).
    function _assertFreed(int256 after_, bool drawn) private {
        Terms memory terms = _terms();
        terms.verifiers = 1;
        TaskId other = _one(terms);
        _draw(other);
        _convict(other);
        TaskId task = _assigned(terms, 1);
        uint256 time = vm.getBlockTimestamp() + 10;
        if (after_ < 0) _release(other, time - uint256(-after_));
        vm.warp(time);
        _submit(task);
        if (after_ >= 0) _release(other, time + uint256(after_));
        _draw(task);
        assertEq(board.seatsOf(task)[0].account, drawn ? candidate : address(0));
    }

    function _release(TaskId task, uint256 time) private {
        vm.warp(time);
        board.release(task, 0);
    }
}
