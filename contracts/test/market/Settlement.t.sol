// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Errors} from "../../src/libraries/Errors.sol";
import {SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "./Deployment.sol";

/// @title The ends of a submitted task, and the hooks of the game.
contract SettlementTest is Deployment {
    // ------------------------------------------------------------------ settle

    function testFuzz_settle_paysEverybody_succeeds(uint128 price) public {
        price = uint128(bound(price, 0, BUDGET));
        TaskId task = _audited(price);
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        vm.expectEmit();
        emit ITaskMarket.Settled(task, solver, price);
        market.settle(task);
        assertEq(vault.free(solver), FUNDS + price);
        uint256 fees = duties.length * FEE;
        assertEq(vault.free(submitter), FUNDS - price - fees - DRAW_FEE);
        assertEq(vault.free(drawer), DRAW_FEE);
        uint256 earned;
        for (uint256 i; i < verifiers.length; ++i) {
            earned += vault.free(verifiers[i]) - (FUNDS - 100 * UNIT);
        }
        assertEq(earned, fees);
        assertEq(_remaining(market.taskOf(task).escrow), 0);
        assertEq(_remaining(market.taskOf(task).stake), 0);
    }

    /// @dev Only attested duties are paid, each to its own verifier.
    function test_settle_onlyAttestedDuties_succeeds() public {
        Terms memory terms = _terms();
        (terms.verifiers, terms.segmentsPerVerifier, terms.matches) = (6, 3, 1);
        TaskId task = _assigned(terms, 1);
        _submit(task);
        _draw(task, HEADER_MIX_HASH);
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        bool[] memory seen = new bool[](SEGMENTS + 1);
        uint256[3] memory due;
        for (uint256 i; i < duties.length; ++i) {
            if (seen[SegmentIndex.unwrap(duties[i].segment)]) continue;
            seen[SegmentIndex.unwrap(duties[i].segment)] = true;
            _attest(task, i);
            for (uint256 v; v < 3; ++v) {
                if (duties[i].verifier == verifiers[v]) due[v] += FEE;
            }
        }
        vm.warp(market.taskOf(task).challengeUntil + 1);
        market.settle(task);
        for (uint256 v; v < 3; ++v) {
            assertEq(vault.free(verifiers[v]), FUNDS - 100 * UNIT + due[v]);
        }
    }

    function test_settle_early_reverts() public {
        TaskId task = _drawn(1);
        _attestAll(task);
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooEarly.selector, until, until));
        market.settle(task);
    }

    function test_settle_undrawn_reverts() public {
        TaskId task = _submitted(1);
        vm.warp(market.taskOf(task).challengeUntil + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotSatisfied.selector, task));
        market.settle(task);
    }

    function test_settle_openGame_reverts() public {
        TaskId task = _drawn(1);
        _attestAll(task);
        vm.prank(game);
        market.gameOpened(task);
        vm.warp(market.taskOf(task).challengeUntil + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.GamesOpen.selector, task, 1));
        market.settle(task);
        vm.prank(game);
        market.gameClosed(task);
        market.settle(task);
    }

    function test_settle_twice_reverts() public {
        TaskId task = _audited(1);
        market.settle(task);
        vm.expectRevert(abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Settled));
        market.settle(task);
    }

    // ------------------------------------------------------------------ void

    function test_voidTask_missingAttestation_succeeds() public {
        TaskId task = _drawn(5);
        uint256 count = board.dutiesOf(task).length;
        for (uint256 i = 1; i < count; ++i) {
            if (SegmentIndex.unwrap(board.dutiesOf(task)[i].segment) != SEGMENTS) _attest(task, i);
        }
        vm.warp(market.taskOf(task).challengeUntil + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotSatisfied.selector, task));
        market.settle(task);
        vm.expectEmit();
        emit ITaskMarket.Voided(task, _escrowOf(_terms()) - DRAW_FEE, 0);
        market.voidTask(task);
        assertEq(vault.free(solver), FUNDS);
        assertEq(vault.free(submitter), FUNDS - DRAW_FEE);
        assertEq(vault.burned(), 0);
    }

    function test_voidTask_satisfied_reverts() public {
        TaskId task = _audited(5);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotVoidable.selector, task));
        market.voidTask(task);
    }

    /// @dev As long as the draw can happen, the solver is not deprived of its pay.
    function test_voidTask_drawPossible_reverts() public {
        TaskId task = _submitted(5);
        vm.warp(market.taskOf(task).challengeUntil + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotVoidable.selector, task));
        market.voidTask(task);
    }

    function test_voidTask_early_reverts() public {
        TaskId task = _drawn(5);
        uint64 until = market.taskOf(task).challengeUntil;
        vm.expectRevert(abi.encodeWithSelector(Errors.TooEarly.selector, until, block.timestamp));
        market.voidTask(task);
    }

    function test_voidTask_openGame_reverts() public {
        TaskId task = _drawn(5);
        vm.prank(game);
        market.gameOpened(task);
        vm.warp(market.taskOf(task).challengeUntil + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.GamesOpen.selector, task, 1));
        market.voidTask(task);
    }

    /// @dev Whoever has kept everybody from drawing was never audited: its stake is lost. The escrow returns whole.
    function test_voidTask_everyDrawMissed_burnsStake_succeeds() public {
        TaskId task = _submittedAndMissed();
        vm.warp(market.taskOf(task).challengeUntil + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotVoidable.selector, task));
        market.voidTask(task);
        vm.roll(uint256(market.taskOf(task).drawBlock) + 8192);
        vm.expectRevert(abi.encodeWithSelector(Errors.DrawLost.selector, task));
        board.missed(task);
        vm.expectEmit();
        emit ITaskMarket.Voided(task, _escrowOf(_terms()), STAKE);
        market.voidTask(task);
        assertEq(vault.free(solver), FUNDS - STAKE);
        assertEq(vault.free(submitter), FUNDS);
        assertEq(vault.burned(), STAKE);
        assertEq(_remaining(market.taskOf(task).stake), 0);
    }

    /// @dev Until the last block is out of reach the solver itself can draw, and then nothing burns.
    function test_voidTask_drawnAtTheLastTry_succeeds() public {
        TaskId task = _submittedAndMissed();
        _draw(task, HEADER_MIX_HASH);
        vm.warp(market.taskOf(task).challengeUntil + 1);
        market.voidTask(task);
        assertEq(vault.free(solver), FUNDS);
        assertEq(vault.burned(), 0);
    }

    /// @dev A game decides about the stake first: it cannot be burned under a challenger that may win it.
    function test_voidTask_everyDrawMissedOpenGame_reverts() public {
        TaskId task = _submittedAndMissed();
        vm.prank(game);
        market.gameOpened(task);
        vm.roll(uint256(market.taskOf(task).drawBlock) + 8192);
        vm.warp(market.taskOf(task).challengeUntil + 1);
        assertTrue(board.drawLost(task));
        vm.expectRevert(abi.encodeWithSelector(Errors.GamesOpen.selector, task, 1));
        market.voidTask(task);
        vm.prank(game);
        market.convict(task, challenger, 30 * uint256(UNIT));
        assertEq(vault.free(challenger), 30 * uint256(UNIT));
        assertEq(vault.burned(), STAKE - 30 * uint256(UNIT) - _terms().restitution);
    }

    // ------------------------------------------------------------------ hooks of the game

    function test_gameOpened_training_succeeds() public {
        TaskId task = _assigned(1);
        _progress(task, 2);
        vm.prank(game);
        market.gameOpened(task);
        assertEq(market.taskOf(task).openGames, 1);
    }

    function test_gameOpened_withoutProgress_reverts() public {
        TaskId task = _assigned(1);
        vm.expectRevert(
            abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Training)
        );
        vm.prank(game);
        market.gameOpened(task);
    }

    function test_gameOpened_deadlineMissed_reverts() public {
        TaskId task = _assigned(1);
        _progress(task, 2);
        uint64 until = market.taskOf(task).trainUntil;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooLate.selector, until, until + 1));
        vm.prank(game);
        market.gameOpened(task);
    }

    function test_gameOpened_windowOver_reverts() public {
        TaskId task = _drawn(1);
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooLate.selector, until, until + 1));
        vm.prank(game);
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
        market.fixDrawBlock(task);
        vm.expectRevert(notBoard);
        market.payDrawer(task, address(this));
    }

    /// @dev 1000 staked: 250 burn first, 30 reward, 60 restitution, 660 burn; the whole escrow goes back.
    function test_convict_distributesStake_succeeds() public {
        TaskId task = _submitted(5);
        vm.startPrank(game);
        market.gameOpened(task);
        vm.expectEmit();
        emit ITaskMarket.Slashed(task, solver, challenger, STAKE, 30 * UNIT);
        market.convict(task, challenger, 30 * UNIT);
        assertEq(vault.burned(), 910 * UNIT);
        assertEq(vault.free(challenger), 30 * UNIT);
        assertEq(vault.free(submitter), FUNDS + 60 * UNIT);
        assertEq(vault.free(solver), FUNDS - STAKE);
        assertEq(market.taskOf(task).openGames, 0);
    }

    function testFuzz_convict_anyReward_succeeds(uint256 reward, uint128 stake, uint128 restitution) public {
        Terms memory terms = _terms();
        terms.stake = uint128(bound(stake, 40 * UNIT, FUNDS));
        terms.delayPenalty = 0;
        terms.restitution = uint128(bound(restitution, 0, BUDGET));
        TaskId task = _assigned(terms, 5);
        _progress(task, 2);
        _convict(task, reward);
        uint256 restored = vault.free(submitter) - FUNDS;
        assertEq(vault.burned() + vault.free(challenger) + restored, terms.stake);
        assertGe(vault.burned(), (terms.stake + 3) / 4);
        assertLe(restored, terms.restitution);
        if (reward <= 30 * UNIT) assertEq(vault.free(challenger), reward);
    }

    function test_convict_twice_reverts() public {
        TaskId task = _submitted(5);
        _convict(task, 1);
        vm.prank(game);
        vm.expectRevert(abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Slashed));
        market.convict(task, challenger, 1);
    }

    function test_convict_settled_reverts() public {
        TaskId task = _audited(5);
        market.settle(task);
        vm.expectRevert(abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Settled));
        vm.prank(game);
        market.convict(task, challenger, 1);
    }

    function test_settle_slashed_reverts() public {
        TaskId task = _audited(5);
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until);
        _convict(task, 1);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Slashed));
        market.settle(task);
        vm.expectRevert(abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Slashed));
        market.voidTask(task);
    }

    /// @dev A submitted task on its last draw block: every draw before it was missed.
    function _submittedAndMissed() private returns (TaskId task) {
        task = _submitted(5);
        for (uint256 i; i < _parameters().maxMisses; ++i) {
            vm.roll(uint256(market.taskOf(task).drawBlock) + 8192);
            board.missed(task);
        }
    }

    /// @dev A game on the task, won.
    function _convict(TaskId task, uint256 reward) private {
        vm.startPrank(game);
        market.gameOpened(task);
        market.convict(task, challenger, reward);
        vm.stopPrank();
        assertEq(market.taskOf(task).openGames, 0);
    }
}
