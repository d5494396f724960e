// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Errors} from "../../src/libraries/Errors.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "./Deployment.sol";

/// @title Settling a task, and the hooks of the game and of the audit board.
contract SettlementTest is Deployment {
    // ------------------------------------------------------------------ settle

    function testFuzz_settle_paysEverybody_succeeds(uint128 price) public {
        price = uint128(bound(price, 0, BUDGET));
        TaskId task = _audited(price);
        vm.expectEmit();
        emit ITaskMarket.Settled(task, solver, price);
        market.settle(task);
        assertEq(vault.free(solver), FUNDS + price);
        assertEq(vault.free(submitter), FUNDS - price - 3 * SEAT_FEE - DRAW_FEE);
        assertEq(vault.free(drawer), DRAW_FEE);
        address[] memory accounts = _accounts(task);
        for (uint256 i; i < 3; ++i) {
            assertEq(vault.free(accounts[i]), FUNDS - SEAT_STAKE + SEAT_FEE);
        }
        assertEq(vault.burned(), 0);
        assertEq(_remaining(market.taskOf(task).escrow), 0);
        assertEq(_remaining(market.taskOf(task).stake), 0);
    }

    /// @dev A seat is paid for as many segments as it has, and no other amount hides in the escrow.
    function testFuzz_settle_anyFees_succeeds(uint128 fee, uint16 verifiers_, uint16 segments) public {
        Terms memory terms = _terms();
        terms.verifiers = uint16(bound(verifiers_, 1, 4));
        terms.segmentsPerVerifier = uint16(bound(segments, 1, SEGMENTS));
        terms.auditFee = uint128(bound(fee, UNIT, 7 * UNIT));
        terms.seatLock = 90 * UNIT;
        TaskId task = _drawn(terms, 5);
        _attestAll(task);
        _endWindow(task);
        market.settle(task);
        uint256 due = uint256(terms.auditFee) * terms.segmentsPerVerifier;
        address[] memory accounts = _accounts(task);
        for (uint256 i; i < accounts.length; ++i) {
            assertEq(vault.free(accounts[i]), FUNDS - SEAT_STAKE + due);
        }
        assertEq(vault.free(submitter), FUNDS - 5 - DRAW_FEE - accounts.length * due);
    }

    /// @dev The window begins with the draw.
    function test_settle_early_reverts() public {
        TaskId task = _submitted(1);
        _expectSettleTooEarly(task, type(uint64).max);
        _draw(task);
        uint64 until = uint64(block.timestamp) + _terms().challengePeriod;
        _attestAll(task);
        vm.warp(until);
        _expectSettleTooEarly(task, until);
        vm.warp(until + 1);
        market.settle(task);
    }

    function test_settle_missingAttestation_reverts() public {
        TaskId task = _drawn(1);
        _attest(task, 0);
        _attest(task, 2);
        _endWindow(task);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAttested.selector, task, 1));
        market.settle(task);
    }

    function test_settle_openGame_reverts() public {
        TaskId task = _drawn(1);
        _attestAll(task);
        vm.prank(game);
        market.gameOpened(task);
        _endWindow(task);
        vm.expectRevert(abi.encodeWithSelector(Errors.GamesOpen.selector, task, 1));
        market.settle(task);
        vm.prank(game);
        market.gameClosed(task);
        market.settle(task);
    }

    function test_settle_twice_reverts() public {
        TaskId task = _audited(1);
        market.settle(task);
        _expectWrongStatus(task, ITaskMarket.Status.Settled);
        market.settle(task);
    }

    // ------------------------------------------------------------------ hooks of the game

    /// @dev Challenges begin at the submission, before the draw.
    function test_gameOpened_undrawn_succeeds() public {
        TaskId task = _submitted(1);
        vm.warp(block.timestamp + 1000);
        vm.prank(game);
        ITaskMarket.Played memory played = market.gameOpened(task);
        assertEq(market.taskOf(task).openGames, 1);
        assertEq(played.root, _root(SEGMENTS + 1));
        assertEq(played.size, SEGMENTS + 1);
        assertEq(played.clock, _terms().clock + _terms().replayAllowance);
    }

    function test_gameOpened_windowOver_reverts() public {
        TaskId task = _drawn(1);
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until);
        vm.startPrank(game);
        market.gameOpened(task);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooLate.selector, until, until + 1));
        market.gameOpened(task);
    }

    function test_hooks_byStranger_reverts() public {
        TaskId task = _submitted(1);
        bytes memory notGame = abi.encodeWithSelector(Errors.NotAllowed.selector, game, address(this));
        vm.expectRevert(notGame);
        market.gameOpened(task);
        vm.expectRevert(notGame);
        market.gameClosed(task);
        vm.expectRevert(notGame);
        market.convict(task, challenger, 1);
        bytes memory notBoard =
            abi.encodeWithSelector(Errors.NotAllowed.selector, address(board), address(this));
        vm.expectRevert(notBoard);
        market.drawAsked(task, true);
        vm.expectRevert(notBoard);
        market.drawn(task, address(this));
        bytes memory notMarket =
            abi.encodeWithSelector(Errors.NotAllowed.selector, address(market), address(this));
        vm.expectRevert(notMarket);
        board.snapshot(task);
        vm.expectRevert(notMarket);
        board.askFirstDraw(task, 3);
    }

    /// @dev 1000 staked: 250 burn first, 30 reward, 60 restitution, 660 burn; the escrow goes back.
    function test_convict_distributesStake_succeeds() public {
        TaskId task = _drawn(5);
        vm.startPrank(game);
        market.gameOpened(task);
        vm.expectEmit();
        emit ITaskMarket.Slashed(task, solver, challenger, STAKE, 30 * UNIT);
        market.convict(task, challenger, 30 * UNIT);
        assertEq(vault.burned(), 910 * UNIT);
        assertEq(vault.free(challenger), 30 * UNIT);
        assertEq(vault.free(submitter), FUNDS + 60 * UNIT - DRAW_FEE);
        assertEq(vault.free(solver), FUNDS - STAKE);
        assertEq(market.taskOf(task).openGames, 0);
        assertEq(_remaining(market.taskOf(task).escrow), 0);
    }

    function testFuzz_convict_anyReward_succeeds(uint256 reward, uint128 stake, uint128 restitution) public {
        Terms memory terms = _terms();
        terms.stake = uint128(bound(stake, 40 * UNIT, FUNDS));
        terms.delayPenalty = 0;
        terms.restitution = uint128(bound(restitution, 0, BUDGET));
        TaskId task = _submitted(terms, 5);
        _convict(task, reward);
        // The escrow keeps the fee of the draw that is asked for.
        uint256 restored = vault.free(submitter) + DRAW_FEE - FUNDS;
        assertEq(vault.burned() + vault.free(challenger) + restored, terms.stake);
        assertGe(vault.burned(), (terms.stake + 3) / 4);
        assertLe(restored, terms.restitution);
        if (reward <= 30 * UNIT) assertEq(vault.free(challenger), reward);
    }

    function test_convict_twice_reverts() public {
        TaskId task = _submitted(5);
        _convict(task, 1);
        _expectWrongStatus(task, ITaskMarket.Status.Slashed);
        vm.prank(game);
        market.convict(task, challenger, 1);
    }

    function test_convict_settled_reverts() public {
        TaskId task = _audited(5);
        market.settle(task);
        _expectWrongStatus(task, ITaskMarket.Status.Settled);
        vm.prank(game);
        market.convict(task, challenger, 1);
    }

    function test_ends_slashed_reverts() public {
        TaskId task = _drawn(5);
        _attestAll(task);
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until);
        _convict(task, 1);
        vm.warp(until + STALL_PERIOD);
        _expectWrongStatus(task, ITaskMarket.Status.Slashed);
        market.settle(task);
        _expectWrongStatus(task, ITaskMarket.Status.Slashed);
        market.voidTask(task);
        _expectWrongStatus(task, ITaskMarket.Status.Slashed);
        market.stall(task);
        _expectWrongStatus(task, ITaskMarket.Status.Slashed);
        market.closeStalled(task);
        _expectWrongStatus(task, ITaskMarket.Status.Slashed);
        board.redraw(task);
    }

    // ------------------------------------------------------------------ inside

    /// @dev A game on the task, won.
    function _convict(TaskId task, uint256 reward) private {
        vm.startPrank(game);
        market.gameOpened(task);
        market.convict(task, challenger, reward);
        vm.stopPrank();
        assertEq(market.taskOf(task).openGames, 0);
    }

    function _expectSettleTooEarly(TaskId task, uint64 until) private {
        vm.expectRevert(abi.encodeWithSelector(Errors.TooEarly.selector, until, block.timestamp));
        market.settle(task);
    }

    function _expectWrongStatus(TaskId task, ITaskMarket.Status status) private {
        vm.expectRevert(abi.encodeWithSelector(Errors.WrongStatus.selector, task, status));
    }
}
