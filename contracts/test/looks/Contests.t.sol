// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Digesting} from "./Digesting.sol";

/// @title The outcome of an accusation that the accused account contests by its own game, or that a
/// conviction interrupts.
contract ContestsTest is Digesting {
    Spot private whole = Spot(2, 0, 1);

    // ------------------------------------------------------------------ contests

    /// @dev The solver posted a different state from the one it trained, and a look accuses based on it: the
    /// seat plays, and convicts.
    function test_contest_won_succeeds() public {
        GameId id = _falselyAccused();
        GameId own = _challengeBy(_account(0), _segmentOf(32));
        address account = _account(0);
        vm.expectEmit();
        emit ILooks.Contested(task, 32, own);
        vm.prank(account);
        looks.contest(task, 32, own);
        assertEq(looks.lookOf(task, 32).game, GameId.unwrap(own));
        _selectStep(own, 32, 2);
        _reach(uint256(looks.answersUntil(task)) + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GameGoesOn.selector, own));
        looks.takeUnanswered(task, 32);
        _timeOut(own);
        _assertVerdict(own, IDisputeGame.Verdict.SolverSilent);
        _assertVerdict(id, IDisputeGame.Verdict.Dropped);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        looks.takeUnanswered(task, 32);
        uint256 had = _free(_account(0));
        vm.expectEmit();
        emit ILooks.Moot(task, 32);
        looks.closeMoot(task, 32);
        assertEq(_free(_account(0)), had + GAME_COST);
        assertEq(looks.openAccusations(task), 0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAccused.selector, task, 32));
        looks.closeMoot(task, 32);
        // The seat also gets a game's cost and its fee.
        commitments.compensate(task, 0, own);
        assertEq(_free(_account(0)), had + 2 * uint256(GAME_COST) + 2 * SEAT_FEE);
        _releaseAll();
    }

    /// @dev The seat abandons its game: once the game is over, the seat loses its lock as if it had not
    /// contested.
    function test_contest_lost_succeeds() public {
        _accused(1, whole);
        GameId own = _challengeBy(_account(0), _segmentOf(32));
        _contest(32, own);
        _reach(uint256(looks.answersUntil(task)) + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GameGoesOn.selector, own));
        looks.takeUnanswered(task, 32);
        Reply memory reply = _replyOf(32, whole);
        vm.expectPartialRevert(Refusals.TooLate.selector);
        _answerWith(32, reply);
        _timeOut(own);
        _assertVerdict(own, IDisputeGame.Verdict.ChallengerSilent);
        _loses(32, 0);
        _settle();
    }

    /// @dev An account that contests may still answer while there is time, and the old game does not contest
    /// the next accusation.
    function test_contest_answered_succeeds() public {
        _accused(1, whole);
        GameId own = _challengeBy(_account(0), _segmentOf(32));
        _contest(32, own);
        _answer(32, whole);
        _accuse(32, NONE, whole);
        assertEq(looks.lookOf(task, 32).game, 0);
        _reach(uint256(looks.answersUntil(task)) + 1);
        _loses(32, 0);
    }

    function test_contest_refused_reverts() public {
        GameId dropped = _accused(1, whole);
        address account = _account(0);
        GameId own = _challengeBy(account, _segmentOf(32));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, account, anyone));
        vm.prank(anyone);
        looks.contest(task, 32, own);
        uint256 later = _segmentOf(32) + 1;
        assertLe(later, SEGMENTS);
        GameId[4] memory games =
            [dropped, _challengeBy(second, _segmentOf(32)), _challengeBy(account, later), GameId.wrap(99)];
        vm.startPrank(account);
        for (uint256 k; k < 4; ++k) {
            vm.expectRevert(abi.encodeWithSelector(Refusals.NotOfLook.selector, task, 32, games[k]));
            looks.contest(task, 32, games[k]);
        }
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAccused.selector, task, 33));
        looks.contest(task, 33, own);
        uint64 until = looks.lookOf(task, 32).until;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        looks.contest(task, 32, own);
        vm.warp(until);
        looks.contest(task, 32, own);
        vm.stopPrank();
    }

    /// @dev A game on an earlier segment, or one that has selected none yet, contests too: after a false
    /// segment, no honest digest of a later one matches the solver's.
    function test_contest_before_succeeds() public {
        _accused(1, whole);
        assertGt(_segmentOf(32), 1);
        _contest(32, _challengeBy(_account(0), _segmentOf(32) - 1));
        _answer(32, whole);
        _accuse(32, NONE, whole);
        address account = _account(0);
        bytes32 salt = _commit(task, UNKNOWN, account);
        vm.prank(account);
        GameId blind = game.challengeBlind(task, salt);
        _contest(32, blind);
        _reach(uint256(looks.answersUntil(task)) + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GameGoesOn.selector, blind));
        looks.takeUnanswered(task, 32);
    }

    /// @dev The accused account's game is over, so it does not contest.
    function test_contest_closedGame_reverts() public {
        _ready(1);
        GameId own = _challengeBy(_account(0), _segmentOf(32));
        uint64 deadline = game.gameOf(own).deadline;
        vm.warp(deadline);
        _accuse(32, NONE, whole);
        _timeOut(own);
        address account = _account(0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotOfLook.selector, task, 32, own));
        vm.prank(account);
        looks.contest(task, 32, own);
    }

    /// @dev The look's account opens its game in the last second of the window, and accuses a second later
    /// using a false step tree. The accused can challenge for as long as it may answer. So can others, and
    /// nobody after that.
    function test_contest_afterTheWindow_succeeds() public {
        _forge();
        uint64 window = market.taskOf(task).challengeUntil;
        vm.warp(window);
        GameId id = _openGame(32);
        vm.warp(window + 1);
        address account = _account(0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, window, window + 1));
        vm.prank(account);
        commitments.commit(task, 0, keccak256("commitment"));
        _accuse(32, id, whole);
        uint64 until = window + 1 + MOVE_TIME;
        assertEq(looks.answersUntil(task), until);
        vm.warp(until);
        GameId own = _challengeBy(_account(0), _segmentOf(32));
        _contest(32, own);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, window, until + 1));
        vm.prank(second);
        commitments.commit(task, 255, keccak256("commitment"));
        _selectStep(own, 32, 2);
        _timeOut(own);
        _assertVerdict(own, IDisputeGame.Verdict.SolverSilent);
        looks.closeMoot(task, 32);
    }

    /// @dev Challenges are accepted until the last answer was due, even if the answer is already given. A
    /// task that somebody can still challenge is not settled: a challenger that has committed would lose its
    /// bond.
    function test_settle_answered_reverts() public {
        _looked(1);
        _reveal(32);
        _attest(32);
        _drawPicks(0);
        uint64 window = market.taskOf(task).challengeUntil;
        vm.warp(window);
        GameId id = _openGame(32);
        vm.warp(window + 1);
        _accuse(32, id, whole);
        SegmentIndex one = SegmentIndex.wrap(1);
        bytes32 salt = _commit(task, one, second);
        _answer(32, whole);
        uint64 until = looks.answersUntil(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, window + 1));
        market.settle(task);
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        market.settle(task);
        (Leaf memory before, Leaf memory afterwards) = (_leaf(checkpoints, 0), _leaf(checkpoints, 1));
        vm.prank(second);
        id = game.challenge(task, one, salt, before, afterwards);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GamesOpen.selector, task, 1));
        market.settle(task);
        _timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.SolverSilent);
    }

    // ------------------------------------------------------------------ convictions

    /// @dev Another account's game convicts while an accusation is open: the bond goes to the seat, whatever
    /// its digest.
    function test_closeMoot_convictedElsewhere_succeeds() public {
        _accused(1, whole);
        Reply memory reply = _replyOf(32, whole);
        address account = _account(0);
        _timeOut(_challengeBy(second, _segmentOf(32) == 1 ? 2 : 1));
        bytes memory over =
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed);
        vm.expectRevert(over);
        _answerWith(32, reply);
        vm.expectRevert(over);
        vm.prank(account);
        looks.contest(task, 32, NONE);
        vm.expectRevert(over);
        looks.takeUnanswered(task, 32);
        uint256 had = _free(account);
        vm.prank(anyone);
        looks.closeMoot(task, 32);
        assertEq(_free(account), had + GAME_COST);
        assertFalse(board.seatOf(task, 0).caught);
        _releaseAll();
    }

    function test_closeMoot_notAccused_reverts() public {
        _ready(1);
        _timeOut(_challengeBy(second, _segmentOf(32) == 1 ? 2 : 1));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAccused.selector, task, 32));
        looks.closeMoot(task, 32);
    }

    // ------------------------------------------------------------------ inside

    /// @dev Seat 0 and the look of slot 0 are honest; the solver will forge state 2 of the segment.
    function _forge() private {
        _looked(1);
        _reveal(32);
        _attest(32);
        _drawPicks(0);
        forged = _numberOf(_segmentOf(32), 2);
    }

    /// @dev The look's account accuses because of the forged state, and the seat cannot answer.
    function _falselyAccused() private returns (GameId id) {
        _forge();
        id = _openGame(32);
        _accuse(32, id, whole);
        Reply memory reply = _replyOf(32, whole);
        _expectWrongRoot(reply);
    }
}
