// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Digesting} from "./Digesting.sol";

/// @title The outcome of an accusation, answered or not.
contract AnswersTest is Digesting {
    Spot private whole = Spot(2, 0, 1);

    // ------------------------------------------------------------------ answers

    /// @dev Whole and short chunks of any state, thinned or not: the bond goes to the accused account.
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
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAccused.selector, task, 32));
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
        // Only the stored accusation can be answered.
        reply = _replyOf(32, whole);
        reply.accusation.leaf = keccak256("another");
        _expectNotAccused(reply);
        reply = _replyOf(32, Spot(2, 0, 0));
        _expectNotAccused(reply);
        reply = _replyOf(32, whole);
        reply.accusation.segmentRoot = keccak256("another");
        _expectNotAccused(reply);
        reply = _replyOf(32, whole);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAccused.selector, task, 33));
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
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        _answerWith(32, reply);
    }

    /// @dev A seat that left the chunk out cannot answer for it, but can for another chunk.
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

    /// @dev Half of the lock goes to the look, whose bond is returned; the other half burns. Then the task
    /// can settle.
    function test_takeUnanswered_succeeds() public {
        _accused(1, whole);
        uint64 until = looks.lookOf(task, 32).until;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        looks.takeUnanswered(task, 32);
        _reach(uint256(market.taskOf(task).challengeUntil) + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAudited.selector, task));
        market.settle(task);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Submitted)
        );
        looks.closeMoot(task, 32);
        _loses(32, 0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAccused.selector, task, 32));
        looks.takeUnanswered(task, 32);
        market.settle(task);
        assertEq(_free(_account(0)), FUNDS - SEAT_STAKE);
        _releaseAll();
    }

    /// @dev Both looks at a seat accuse it: the first takes the lock, the other gets its bond back, and
    /// nothing stays open.
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

    /// @dev One look takes the lock for a digest that was not opened, while the other's accusation is open
    /// and can still be answered.
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
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        _answerWith(64, reply);
        _reach(uint256(looks.answersUntil(task)) + 1);
        _loses(64, 32);
        assertFalse(board.seatOf(task, 0).caught);
        _settle();
        _releaseAll();
    }

    // ------------------------------------------------------------------ inside

    function _expectNotAccused(Reply memory reply) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAccused.selector, task, 32));
        _answerWith(32, reply);
    }
}
