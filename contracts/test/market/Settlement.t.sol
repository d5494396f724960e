// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
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

    /// @dev A seat is paid for its number of segments, and the rest of the escrow returns to the submitter.
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
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAudited.selector, task));
        market.settle(task);
    }

    function test_settle_openGame_reverts() public {
        TaskId task = _drawn(1);
        _attestAll(task);
        vm.prank(game);
        market.gameOpened(task);
        _endWindow(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GamesOpen.selector, task, 1));
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
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        market.gameOpened(task);
    }

    function test_hooks_byStranger_reverts() public {
        TaskId task = _submitted(1);
        bytes memory notGame = abi.encodeWithSelector(Refusals.NotAllowed.selector, game, address(this));
        vm.expectRevert(notGame);
        market.gameOpened(task);
        vm.expectRevert(notGame);
        market.gameClosed(task);
        vm.expectRevert(notGame);
        market.convict(task, challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, commitments, address(this)));
        market.compensate(task, challenger, true, 2);
        bytes memory notBoard =
            abi.encodeWithSelector(Refusals.NotAllowed.selector, address(board), address(this));
        vm.expectRevert(notBoard);
        market.drawAsked(task, true);
        vm.expectRevert(notBoard);
        market.drawn(task, address(this), 1);
        bytes memory notMarket =
            abi.encodeWithSelector(Refusals.NotAllowed.selector, address(market), address(this));
        vm.expectRevert(notMarket);
        board.snapshot(task);
        vm.expectRevert(notMarket);
        board.askFirstDraw(task, 3);
    }

    /// @dev Reward and restitution are paid at once, the escrow is returned, and the rest of the stake is
    /// reserved for seats.
    function test_convict_paysRewardAndRestitution_succeeds() public {
        TaskId task = _drawn(5);
        vm.startPrank(game);
        market.gameOpened(task);
        vm.expectEmit();
        emit ITaskMarket.Slashed(task, solver, challenger, STAKE, REWARD);
        market.convict(task, challenger);
        assertEq(vault.burned(), 0);
        assertEq(vault.free(challenger), REWARD);
        assertEq(vault.free(submitter), FUNDS + 60 * UNIT - DRAW_FEE);
        assertEq(vault.free(solver), FUNDS - STAKE);
        assertEq(market.taskOf(task).openGames, 0);
        assertEq(_remaining(market.taskOf(task).escrow), 0);
        assertEq(_remaining(market.taskOf(task).stake), STAKE - REWARD - 60 * UNIT);
    }

    /// @dev The minimum stake covers all that it owes, and at least a quarter of it still burns.
    function testFuzz_convict_leastStake_coversEverySeat_succeeds(
        uint128 reward,
        uint128 retrainReward,
        uint128 restitution,
        uint128 gameCost,
        uint128 fee
    ) public {
        Terms memory terms = _terms();
        terms.restitution = uint128(bound(restitution, 0, BUDGET));
        terms.gameCost = uint128(bound(gameCost, UNIT, 50 * UNIT));
        terms.auditFee = uint128(bound(fee, 0, 15 * UNIT));
        uint256 seats = 3 * (uint256(terms.gameCost) + 2 * uint256(terms.auditFee));
        // Both rewards are at most a sixth of all other payments, and so below an eighth of the stake.
        terms.reward = uint128(bound(reward, 0, (seats + terms.restitution) / 6));
        terms.retrainReward = uint128(bound(retrainReward, 0, (seats + terms.restitution) / 6));
        uint256 most = terms.reward > terms.retrainReward ? terms.reward : terms.retrainReward;
        terms.stake = uint128((4 * (most + seats + terms.restitution) + 2) / 3);
        terms.delayPenalty = 0;
        terms.bond = terms.stake / 4;
        // If little but the cost of games is owed, a quarter of the minimum stake may be below the minimum
        // bond; such terms are left out.
        vm.assume(terms.bond >= 2 * terms.gameCost + terms.stake / 1_000_000 + 2);
        TaskId task = _submitted(terms, 5);
        _convict(task);
        uint256 left = terms.stake - terms.reward - terms.restitution;
        vm.startPrank(commitments);
        for (uint256 i; i < 3; ++i) {
            uint256 due = uint256(terms.gameCost) + 2 * uint256(terms.auditFee);
            assertEq(market.compensate(task, verifiers[i], true, 2), due);
            left -= due;
        }
        vm.stopPrank();
        assertEq(_remaining(market.taskOf(task).stake), left);
        _burnRest(task);
        assertEq(vault.burned(), left);
        assertGe(left, (uint256(terms.stake) + 3) / 4);
    }

    // ------------------------------------------------------------------ hook of commitments, and the rest

    function test_compensate_costAndFeeApart_succeeds() public {
        TaskId task = _drawn(5);
        _convict(task);
        uint256 had = vault.free(rival);
        vm.startPrank(commitments);
        assertEq(market.compensate(task, rival, true, 0), GAME_COST);
        assertEq(vault.free(rival), had + GAME_COST);
        assertEq(market.compensate(task, rival, false, 2), SEAT_FEE);
        assertEq(vault.free(rival), had + GAME_COST + SEAT_FEE);
    }

    function test_compensate_notConvicted_reverts() public {
        TaskId task = _audited(5);
        _expectWrongStatus(task, ITaskMarket.Status.Submitted);
        vm.prank(commitments);
        market.compensate(task, rival, true, 2);
        market.settle(task);
        _expectWrongStatus(task, ITaskMarket.Status.Settled);
        vm.prank(commitments);
        market.compensate(task, rival, true, 2);
    }

    function test_burnRest_early_reverts() public {
        TaskId task = _drawn(5);
        _convict(task);
        uint64 until = uint64(block.timestamp) + 77;
        _mockClaims(task, until);
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        market.burnRest(task);
        vm.warp(until + 1);
        vm.expectEmit();
        emit ITaskMarket.RestBurned(task, STAKE - REWARD - 60 * UNIT);
        market.burnRest(task);
        assertEq(vault.burned(), STAKE - REWARD - 60 * UNIT);
        assertEq(_remaining(market.taskOf(task).stake), 0);
    }

    function test_burnRest_twice_burnsNothing_succeeds() public {
        TaskId task = _drawn(5);
        _convict(task);
        _burnRest(task);
        uint256 burned = vault.burned();
        market.burnRest(task);
        assertEq(vault.burned(), burned);
    }

    function test_burnRest_notConvicted_reverts() public {
        TaskId task = _drawn(5);
        _expectWrongStatus(task, ITaskMarket.Status.Submitted);
        market.burnRest(task);
    }

    function test_convict_twice_reverts() public {
        TaskId task = _submitted(5);
        _convict(task);
        _expectWrongStatus(task, ITaskMarket.Status.Slashed);
        vm.prank(game);
        market.convict(task, challenger);
    }

    function test_convict_settled_reverts() public {
        TaskId task = _audited(5);
        market.settle(task);
        _expectWrongStatus(task, ITaskMarket.Status.Settled);
        vm.prank(game);
        market.convict(task, challenger);
    }

    function test_ends_slashed_reverts() public {
        TaskId task = _drawn(5);
        _attestAll(task);
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until);
        _convict(task);
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

    function _expectSettleTooEarly(TaskId task, uint64 until) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, block.timestamp));
        market.settle(task);
    }

    function _expectWrongStatus(TaskId task, ITaskMarket.Status status) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongStatus.selector, task, status));
    }
}
