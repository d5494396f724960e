// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Errors} from "../../src/libraries/Errors.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Digesting} from "./Digesting.sol";

/// @title What becomes of an accusation: it is answered, not answered, contested, or the task is convicted.
contract AnswersTest is Digesting {
    Spot private whole = Spot(2, 0, 1);

    // ------------------------------------------------------------------ answers

    /// @dev Whole and short chunks of any state, thinned or not: the bond is the accused account's.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_answer_everyChunk_succeeds(uint8 step, uint8 chunk, uint8 thinning_) public {
        thinning = uint8(1 << thinning_ % 3);
        Spot memory spot = chunk % 4 == 3 ? Spot(step % 5, 1, 0) : Spot(step % 5, 0, chunk % 4);
        uint32 turns = _placeOf(spot).turns;
        while ((turns + spot.step) % thinning != 0) spot.step = (spot.step + 1) % 5;
        _accused(1, spot);
        address account = _account(0);
        uint256 had = _free(account);
        Reply memory reply = _replyOf(32, spot);
        vm.expectEmit();
        emit ILooks.Answered(task, 32);
        _answerWith(32, reply);
        assertEq(_free(account), had + GAME_COST);
        assertEq(looks.lookOf(task, 32).accused, 0);
        assertEq(looks.openAccusations(task), 0);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAccused.selector, task, 32));
        _answerWith(32, reply);
        assertFalse(board.seatOf(task, 0).caught);
        _settle();
        _releaseAll();
        assertEq(_free(account), FUNDS - SEAT_STAKE + 2 * SEAT_FEE + GAME_COST);
    }

    function test_answer_wrong_reverts() public {
        _accused(1, whole);
        Reply memory reply = _replyOf(32, whole);
        reply.chunk[1] = keccak256("another");
        _expectWrongRoot(reply);
        reply = _replyOf(32, whole);
        reply.tensor[0] = keccak256("another");
        _expectWrongRoot(reply);
        reply = _replyOf(32, whole);
        reply.state[2] = keccak256("another");
        _expectWrongRoot(reply);
        // What it is accused of is kept.
        reply = _replyOf(32, whole);
        reply.accusation.leaf = keccak256("another");
        _expectNotAccused(reply);
        reply = _replyOf(32, Spot(2, 0, 0));
        _expectNotAccused(reply);
        reply = _replyOf(32, whole);
        reply.accusation.segmentRoot = keccak256("another");
        _expectNotAccused(reply);
        reply = _replyOf(32, whole);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAccused.selector, task, 33));
        _answerWith(33, reply);
        _answer(32, whole);
    }

    function test_answer_late_reverts() public {
        _accused(1, whole);
        Reply memory reply = _replyOf(32, whole);
        uint64 until = looks.lookOf(task, 32).until;
        uint256 before = vm.snapshotState();
        vm.warp(until);
        _answerWith(32, reply);
        vm.revertToState(before);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooLate.selector, until, until + 1));
        _answerWith(32, reply);
    }

    /// @dev Who left the chunk out cannot answer for it, and can for every other one.
    function test_answer_skippedChunk_reverts() public {
        (lies, liar, lie) = (true, 0, whole);
        _accused(1, Spot(2, 0, 2));
        _answer(32, Spot(2, 0, 2));
        _accuse(32, NONE, whole);
        Reply memory reply = _replyOf(32, whole);
        _expectWrongRoot(reply);
        _loses(32, 0);
    }

    // ------------------------------------------------------------------ no answer

    /// @dev Half of the lock to the look, whose bond goes back, half burned; then the task can settle.
    function test_takeUnanswered_succeeds() public {
        _accused(1, whole);
        uint64 until = looks.lookOf(task, 32).until;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooEarly.selector, until, until));
        looks.takeUnanswered(task, 32);
        _reach(uint256(market.taskOf(task).challengeUntil) + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAudited.selector, task));
        market.settle(task);
        vm.expectRevert(
            abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Submitted)
        );
        looks.closeMoot(task, 32);
        _loses(32, 0);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAccused.selector, task, 32));
        looks.takeUnanswered(task, 32);
        market.settle(task);
        assertEq(_free(_account(0)), FUNDS - SEAT_STAKE);
        _releaseAll();
    }

    /// @dev Both looks at a seat accuse it: the first takes the lock, the other has its bond back, and nothing stays open.
    function test_takeUnanswered_twoLooks_succeeds() public {
        _accused(3, whole);
        GameId other = _challengeBy(second, _segmentOf(33));
        _expand(_segmentOf(33));
        _accuse(33, NONE, whole);
        assertEq(looks.openAccusations(task), 2);
        _reach(uint256(looks.answersUntil(task)) + 1);
        _loses(32, 0);
        (address account, address looker) = (_account(0), _account(33));
        uint256 had = _free(looker);
        uint256 burned = vault.burned();
        vm.expectEmit();
        emit ILooks.Unanswered(task, 33, account, looker, 0);
        looks.takeUnanswered(task, 33);
        assertEq(_free(looker), had + GAME_COST);
        assertEq(vault.burned(), burned);
        assertEq(_stakeOf(account), SEAT_STAKE - LOCK);
        assertEq(looks.openAccusations(task), 0);
        _timeOut(other);
        _settle();
        _releaseAll();
    }

    /// @dev One look takes the lock for a digest that was not opened, while the other's accusation is open: it can be answered still.
    function test_takeUnrevealed_whileAccused_succeeds() public {
        _looked(3);
        _reveal(32);
        _attestSlots(1, 3);
        _drawPicks(0);
        GameId id = _openGame(32);
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        _accuse(32, id, whole);
        looks.takeUnrevealed(task, 33);
        uint256 before = vm.snapshotState();
        _answer(32, whole);
        assertEq(_free(_account(0)), FUNDS - SEAT_STAKE + GAME_COST);
        vm.revertToState(before);
        _reach(uint256(looks.answersUntil(task)) + 1);
        looks.takeUnanswered(task, 32);
        _settle();
        _releaseAll();
    }

    /// @dev A look is accused by the look of the next level, and loses its own lock.
    function test_takeUnanswered_secondLevel_succeeds() public {
        (lies, liar, lie) = (true, 32, whole);
        _looked(1);
        _reveal(32);
        _attest(32);
        _drawPicks(1);
        _reveal(64);
        _attest(64);
        _drawPicks(0);
        GameId id = _openGame(64);
        _accuse(64, id, whole);
        Reply memory reply = _replyOf(64, whole);
        vm.expectPartialRevert(Errors.WrongRoot.selector);
        _answerWith(64, reply);
        _reach(uint256(looks.answersUntil(task)) + 1);
        _loses(64, 32);
        assertFalse(board.seatOf(task, 0).caught);
        _settle();
        _releaseAll();
    }

    // ------------------------------------------------------------------ contests

    /// @dev The solver posted another state than it trained, and a look accuses by that: the seat plays, and convicts.
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
        vm.expectRevert(abi.encodeWithSelector(Errors.GameGoesOn.selector, own));
        looks.takeUnanswered(task, 32);
        _timeOut(own);
        _assertVerdict(own, IDisputeGame.Verdict.SolverSilent);
        _assertVerdict(id, IDisputeGame.Verdict.Dropped);
        vm.expectRevert(abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Slashed));
        looks.takeUnanswered(task, 32);
        uint256 had = _free(_account(0));
        vm.expectEmit();
        emit ILooks.Moot(task, 32);
        looks.closeMoot(task, 32);
        assertEq(_free(_account(0)), had + GAME_COST);
        assertEq(looks.openAccusations(task), 0);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAccused.selector, task, 32));
        looks.closeMoot(task, 32);
        // Its game's cost and its fee, too.
        commitments.compensate(task, 0, own);
        assertEq(_free(_account(0)), had + 2 * uint256(GAME_COST) + 2 * SEAT_FEE);
        _releaseAll();
    }

    /// @dev The seat leaves its game alone: once that is over it loses its lock as if it had not contested.
    function test_contest_lost_succeeds() public {
        _accused(1, whole);
        GameId own = _challengeBy(_account(0), _segmentOf(32));
        _contest(32, own);
        _reach(uint256(looks.answersUntil(task)) + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.GameGoesOn.selector, own));
        looks.takeUnanswered(task, 32);
        Reply memory reply = _replyOf(32, whole);
        vm.expectPartialRevert(Errors.TooLate.selector);
        _answerWith(32, reply);
        _timeOut(own);
        _assertVerdict(own, IDisputeGame.Verdict.ChallengerSilent);
        _loses(32, 0);
        _settle();
    }

    /// @dev It may answer all the same, while there is time; and the next accusation is not contested by the old game.
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
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAllowed.selector, account, anyone));
        vm.prank(anyone);
        looks.contest(task, 32, own);
        uint256 segment = _segmentOf(32) == 1 ? 2 : 1;
        GameId[4] memory games =
            [dropped, _challengeBy(second, _segmentOf(32)), _challengeBy(account, segment), GameId.wrap(99)];
        vm.startPrank(account);
        for (uint256 k; k < 4; ++k) {
            vm.expectRevert(abi.encodeWithSelector(Errors.NotOfLook.selector, task, 32, games[k]));
            looks.contest(task, 32, games[k]);
        }
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAccused.selector, task, 33));
        looks.contest(task, 33, own);
        uint64 until = looks.lookOf(task, 32).until;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooLate.selector, until, until + 1));
        looks.contest(task, 32, own);
        vm.warp(until);
        looks.contest(task, 32, own);
        vm.stopPrank();
    }

    /// @dev A game of its own that is over is no contest.
    function test_contest_closedGame_reverts() public {
        GameId id = _ready(1);
        GameId own = _challengeBy(_account(0), _segmentOf(32));
        uint64 deadline = game.gameOf(own).deadline;
        vm.warp(deadline);
        _accuse(32, id, whole);
        _timeOut(own);
        address account = _account(0);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotOfLook.selector, task, 32, own));
        vm.prank(account);
        looks.contest(task, 32, own);
    }

    /// @dev The last second of the window, and the look's account accuses by a false step tree: the accused can challenge for as
    /// long as it may answer. So can others, and nobody after that.
    function test_contest_afterTheWindow_succeeds() public {
        _forge();
        uint64 window = market.taskOf(task).challengeUntil;
        vm.warp(window);
        GameId id = _openGame(32);
        vm.warp(window + 1);
        address account = _account(0);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooLate.selector, window, window + 1));
        vm.prank(account);
        commitments.commit(task, 0, keccak256("commitment"));
        _accuse(32, id, whole);
        uint64 until = window + 1 + MOVE_TIME;
        assertEq(looks.answersUntil(task), until);
        vm.warp(until);
        GameId own = _challengeBy(_account(0), _segmentOf(32));
        _contest(32, own);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooLate.selector, window, until + 1));
        vm.prank(second);
        commitments.commit(task, 255, keccak256("commitment"));
        _selectStep(own, 32, 2);
        _timeOut(own);
        _assertVerdict(own, IDisputeGame.Verdict.SolverSilent);
        looks.closeMoot(task, 32);
    }

    // ------------------------------------------------------------------ convictions

    /// @dev Another's game convicts while an accusation is open, whatever the seat's digest: the bond is the seat's.
    function test_closeMoot_convictedElsewhere_succeeds() public {
        _accused(1, whole);
        Reply memory reply = _replyOf(32, whole);
        address account = _account(0);
        _timeOut(_challengeBy(second, _segmentOf(32) == 1 ? 2 : 1));
        bytes memory over =
            abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Slashed);
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
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAccused.selector, task, 32));
        looks.closeMoot(task, 32);
    }

    // ------------------------------------------------------------------ inside

    /// @dev The slots are drawn, revealed and attested, nothing else is looked at; the first one's account has the step tree.
    function _ready(uint256 slots) private returns (GameId) {
        _looked(slots);
        for (uint256 slot; slot < 4; ++slot) {
            if (slots >> slot & 1 == 1) _reveal(32 + slot);
        }
        _attestSlots(1, slots);
        _drawPicks(0);
        return _openGame(32);
    }

    function _accused(uint256 slots, Spot memory spot) private returns (GameId id) {
        id = _ready(slots);
        _accuse(32, id, spot);
    }

    /// @dev Seat 0 and the look of slot 0 are honest; the solver will forge state 2 of the segment.
    function _forge() private {
        _looked(1);
        _reveal(32);
        _attest(32);
        _drawPicks(0);
        forged = _numberOf(_segmentOf(32), 2);
    }

    /// @dev The look's account accuses all the same.
    function _falselyAccused() private returns (GameId id) {
        _forge();
        id = _openGame(32);
        _accuse(32, id, whole);
        Reply memory reply = _replyOf(32, whole);
        _expectWrongRoot(reply);
    }

    function _expectWrongRoot(Reply memory reply) private {
        vm.expectPartialRevert(Errors.WrongRoot.selector);
        _answerWith(32, reply);
    }

    function _expectNotAccused(Reply memory reply) private {
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAccused.selector, task, 32));
        _answerWith(32, reply);
    }

    /// @dev Nobody answered for the seat, or look, in time.
    function _loses(uint256 look, uint256 seat) private {
        (address account, address looker) = (_account(seat), _account(look));
        _reach(uint256(looks.lookOf(task, look).until) + 1);
        uint256 had = _free(looker);
        uint256 burned = vault.burned();
        uint256 stake = _stakeOf(account);
        vm.expectEmit();
        emit ILooks.Unanswered(task, look, account, looker, LOCK / 2);
        vm.prank(anyone);
        looks.takeUnanswered(task, look);
        assertEq(_free(looker), had + LOCK / 2 + GAME_COST);
        assertEq(vault.burned(), burned + LOCK / 2);
        assertEq(_stakeOf(account), stake - LOCK);
        assertTrue(board.seatOf(task, seat).caught);
        assertTrue(board.registrationOf(account).suspended);
    }
}
