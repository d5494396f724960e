// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {LeafTree} from "./LeafTree.sol";
import {Play} from "./Play.sol";

/// @title The clock decides against the side to move in every phase; and what then happens to bonds and other
/// games.
contract TimeoutsTest is Play {
    function setUp() public override {
        super.setUp();
        _start();
    }

    // ------------------------------------------------------------------ the solver is silent

    function test_timeOut_stepsNotPosted_convicts_succeeds() public {
        _solverLoses(_challenge());
    }

    function test_timeOut_traceNotPosted_convicts_succeeds() public {
        GameId id = _challenge();
        _expandSteps();
        _selectStep(id);
        _solverLoses(id);
    }

    function test_timeOut_calleeTraceNotPosted_convicts_succeeds() public {
        GameId id = _inTop();
        _selectCall(id);
        _solverLoses(id);
    }

    function test_timeOut_segmentDemandUnanswered_convicts_succeeds() public {
        GameId id = _blind();
        _demand(id, IDisputeGame.Tree.Segment, _node(LeafTree.leaves(checkpoints), 0, 4));
        _solverLoses(id);
    }

    function test_timeOut_stepDemandUnanswered_convicts_succeeds() public {
        GameId id = _challenge();
        _expandSteps();
        _demand(id, IDisputeGame.Tree.Step, _node(LeafTree.leaves(steps), 0, 5));
        _solverLoses(id);
    }

    function test_timeOut_traceDemandUnanswered_convicts_succeeds() public {
        GameId id = _inTop();
        IDisputeGame.ValueOpening memory opening = _none();
        opening.instruction.program = top.opening;
        _demandWith(id, IDisputeGame.Tree.Trace, opening, _node(LeafTree.leaves(topRoots), 0, 7));
        _solverLoses(id);
    }

    // ------------------------------------------------------------------ the challenger is silent

    function test_timeOut_noSegmentSelected_dismisses_succeeds() public {
        _challengerLoses(_blind());
    }

    function test_timeOut_noStepSelected_dismisses_succeeds() public {
        GameId id = _challenge();
        vm.warp(vm.getBlockTimestamp() + 50);
        _expandSteps();
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp() + TIME, "from the claim on");
        _challengerLoses(id);
    }

    function test_timeOut_noMoveInFrame_dismisses_succeeds() public {
        _challengerLoses(_inTop());
    }

    function test_timeOut_noMoveInCallee_dismisses_succeeds() public {
        _challengerLoses(_inCallee());
    }

    // ------------------------------------------------------------------ bounds and other games

    function test_timeOut_inTheLastSecond_reverts() public {
        GameId id = _challenge();
        uint64 deadline = game.gameOf(id).deadline;
        vm.warp(deadline);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, deadline, deadline));
        game.timeOut(id);
    }

    function test_timeOut_twice_reverts() public {
        GameId id = _challenge();
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.GameIsClosed.selector, id, IDisputeGame.Verdict.SolverSilent)
        );
        game.timeOut(id);
    }

    function test_closeMoot_returnsBond_succeeds() public {
        uint256 free = _free(second);
        GameId id = _challenge();
        GameId other = _challengeBy(second, SegmentIndex.wrap(1));
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        assertEq(market.taskOf(task).openGames, 1);
        // Nothing else can happen in the other game: no claim, no timeout.
        vm.expectRevert(abi.encodeWithSelector(Refusals.TaskConvicted.selector, task));
        game.timeOut(other);
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 0), _leaf(checkpoints, 1));
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TaskConvicted.selector, task));
        game.expandSteps(task, SegmentIndex.wrap(1), keccak256("steps"), first, last);

        vm.prank(anyone);
        game.closeMoot(other);
        _assertVerdict(other, IDisputeGame.Verdict.Moot);
        assertEq(_free(second), free);
        assertEq(market.taskOf(task).openGames, 0);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.GameIsClosed.selector, other, IDisputeGame.Verdict.Moot)
        );
        game.closeMoot(other);
    }

    function test_closeMoot_notConvicted_reverts() public {
        GameId id = _challenge();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotMoot.selector, id));
        game.closeMoot(id);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoSuchGame.selector, 2));
        game.closeMoot(GameId.wrap(2));
    }

    function test_challenge_afterConviction_reverts() public {
        GameId id = _challenge();
        vm.warp(game.gameOf(id).deadline + 1);
        bytes32 salt = _commit(task, UNKNOWN, second);
        game.timeOut(id);
        vm.prank(second);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        game.challengeBlind(task, salt);
    }

    function _solverLoses(GameId id) private {
        uint256 free = _free(challenger);
        (,, uint256 stake) = vault.lockOf(market.taskOf(task).stake);
        assertEq(stake, STAKE);
        vm.warp(game.gameOf(id).deadline + 1);
        vm.expectEmit(address(game));
        emit IDisputeGame.Ended(id, IDisputeGame.Verdict.SolverSilent, challenger);
        vm.prank(anyone);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.SolverSilent);
        assertEq(_free(challenger), free + BOND + REWARD);
        assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Slashed));
        assertEq(market.taskOf(task).openGames, 0);
        (,, stake) = vault.lockOf(market.taskOf(task).stake);
        assertEq(stake, STAKE - REWARD - RESTITUTION, "the rest is for seats, and burns");
    }

    function _challengerLoses(GameId id) private {
        (uint256 freeChallenger, uint256 freeSolver) = (_free(challenger), _free(solver));
        uint256 burned = vault.burned();
        vm.warp(game.gameOf(id).deadline + 1);
        vm.expectEmit(address(game));
        emit IDisputeGame.Ended(id, IDisputeGame.Verdict.ChallengerSilent, solver);
        vm.prank(anyone);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.ChallengerSilent);
        assertEq(_free(challenger), freeChallenger, "the bond is lost");
        assertEq(_free(solver), freeSolver + BOND / 2);
        assertEq(vault.burned(), burned + BOND / 2);
        assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Submitted));
        assertEq(market.taskOf(task).openGames, 0);
    }
}
