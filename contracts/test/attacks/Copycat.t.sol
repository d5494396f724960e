// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Play} from "../dispute/Play.sol";

/// @title A challenger that repeats another's moves and ends its own game slightly earlier, to get the
/// reward.
contract CopycatTest is Play {
    function setUp() public override {
        super.setUp();
        _start();
    }

    /// @dev The copycat's commitment is newer, so its conviction rewards the other challenger.
    function test_timeOut_byCopycatFirst_rewardsTheEarlier_succeeds() public {
        _challenge();
        _rewards(_challengeBy(second, SEGMENT), challenger, second);
    }

    /// @dev Two commitments of one block are equally early: the game that entered the segment first keeps its
    /// priority.
    function test_timeOut_commitmentsOfOneBlock_rewardsTheFirstToEnter_succeeds() public {
        uint256 number = vm.getBlockNumber();
        bytes32 salt = _commit(task, SEGMENT, challenger);
        vm.roll(number);
        bytes32 copied = _commit(task, SEGMENT, second);
        (Leaf memory first, Leaf memory last) = _around(SEGMENT);
        vm.prank(challenger);
        game.challenge(task, SEGMENT, salt, first, last);
        vm.prank(second);
        GameId copy = game.challenge(task, SEGMENT, copied, first, last);
        _rewards(copy, challenger, second);
    }

    /// @dev A commitment kept in reserve names no segment; the copycat uses it when it sees the other's
    /// challenge.
    function test_timeOut_blindInStock_rewardsTheEarlier_succeeds() public {
        bytes32 stock = _commit(task, UNKNOWN, second);
        bytes32 salt = _commit(task, SEGMENT, challenger);
        (Leaf memory first, Leaf memory last) = _around(SEGMENT);
        vm.prank(second);
        GameId copy = game.challengeBlind(task, stock);
        bytes32 head = _head(copy);
        vm.prank(second);
        game.selectSegment(copy, head, SEGMENT, first, last);
        vm.prank(challenger);
        game.challenge(task, SEGMENT, salt, first, last);
        _rewards(copy, challenger, second);
    }

    /// @dev An account that comes first and does nothing loses its bond; the reward goes to the one that
    /// continues.
    function test_timeOut_earlierOneDismissed_rewardsTheConvicting_succeeds() public {
        GameId idle = _challenge();
        GameId id = _challengeBy(second, SEGMENT);
        _expandSteps();
        _selectStepBy(second, id);
        vm.warp(game.gameOf(idle).deadline + 1);
        game.timeOut(idle);
        _assertVerdict(idle, IDisputeGame.Verdict.ChallengerSilent);
        vm.warp(game.gameOf(id).deadline + 1);
        _rewards(id, second, challenger);
    }

    /// @dev A game that enters after a dismissal ranks behind all that were there before, whatever the rank
    /// of the dismissed game.
    function test_timeOut_latecomerAfterDismissal_rewardsTheConvicting_succeeds() public {
        GameId idle = _challenge();
        GameId id = _challengeBy(second, SEGMENT);
        _expandSteps();
        _selectStepBy(second, id);
        vm.warp(game.gameOf(idle).deadline + 1);
        game.timeOut(idle);
        address late = _accuser("late");
        _challengeBy(late, SEGMENT);
        _rewards(id, second, late);
    }

    /// @dev When no game is left in a segment, the next one to enter has priority there.
    function test_timeOut_copycatAfterAllWereDismissed_rewardsTheEarlier_succeeds() public {
        GameId idle = _challenge();
        _expandSteps();
        vm.warp(game.gameOf(idle).deadline + 1);
        game.timeOut(idle);
        _challengeBy(second, SEGMENT);
        address late = _accuser("late");
        GameId copy = _challengeBy(late, SEGMENT);
        _selectStepBy(late, copy);
        _rewards(copy, second, late);
    }

    /// @dev An earlier game on another segment has no priority on this one.
    function test_timeOut_earlierOnAnotherSegment_rewardsTheConvicting_succeeds() public {
        _challengeBy(second, SegmentIndex.wrap(1));
        _rewards(_challenge(), challenger, second);
    }

    function _rewards(GameId id, address winner, address other) private {
        (uint256 winnerHad, uint256 otherHad) = (_free(winner), _free(other));
        (address owner, uint256 bond) = (game.gameOf(id).challenger, BOND);
        vm.warp(game.gameOf(id).deadline + 1);
        vm.prank(owner);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.SolverSilent);
        assertEq(_free(winner), winnerHad + REWARD + (owner == winner ? bond : 0));
        assertEq(_free(other), otherHad + (owner == other ? bond : 0));
    }
}
