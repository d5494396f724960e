// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {DrawWords} from "../../src/libraries/DrawWords.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Audit, PendingDraw, Seat} from "../../src/types/Seats.sol";
import {Looking} from "./Looking.sol";

/// @title Draws of looks: when they are requested, whom they find, level by level, and what happens if they
/// find nobody.
contract LookDrawsTest is Looking {
    using DrawWords for DrawWords.Stream;

    // ------------------------------------------------------------------ asking

    /// @dev The last seat's attestation requests looks, and the escrow owes another draw.
    function test_attest_lastSeat_asksForLooks_succeeds() public {
        _start();
        _attest(1);
        assertFalse(_audit().pending);
        uint64 round = beacon.roundFrom(uint64(vm.getBlockTimestamp()) + 4);
        vm.expectEmit();
        emit IAuditBoard.DrawAsked(task, 2, 1, round, 0);
        _attest(0);
        PendingDraw memory first = board.firstDraw();
        assertEq(first.level, 1);
        assertEq(first.seats, 0);
        assertEq(first.purse, 0);
        assertEq(first.round, round);
        Audit memory audit = _audit();
        assertTrue(audit.pending);
        assertFalse(audit.audited);
        assertEq(audit.level, 1);
        assertEq(audit.lookDraws, 1);
        assertEq(audit.escrowDraws, 2);
        assertTrue(market.taskOf(task).owesDraw);
        assertEq(market.taskOf(task).challengeUntil, type(uint64).max);
    }

    function test_attest_lastSeat_withoutLooks_succeeds() public {
        chance = 0;
        _asked();
        assertFalse(_audit().pending);
        assertTrue(_audit().audited);
        assertEq(_audit().level, 0);
        assertEq(board.firstDraw().task, 0);
        _settle();
    }

    // ------------------------------------------------------------------ the first level

    /// @dev With certainty every segment of every seat is looked at, for one to three seats of one to three
    /// segments; each look has a separate account.
    function testFuzz_draw_certainLooks_succeeds(uint16 seats_, uint16 each_) public {
        (seats, each) = (uint16(bound(seats_, 1, 3)), uint16(bound(each_, 1, 3)));
        chance = 10_000;
        uint256 count = seats * each;
        // At most 12 of 24 accounts are taken, so every look finds an account.
        _register(12);
        _asked();
        _drawPicks((1 << count) - 1);
        Audit memory audit = _audit();
        assertEq(audit.looks, count);
        assertEq(audit.looking, (1 << count) - 1);
        assertEq(audit.looked, 0);
        assertEq(audit.pickedAt, vm.getBlockTimestamp());
        assertEq(audit.until, vm.getBlockTimestamp() + ATTEST_PERIOD);
        assertEq(market.taskOf(task).challengeUntil, audit.until + REST_OF_WINDOW);
        (uint256[] memory numbers, Seat[] memory found) = board.looksOf(task);
        assertEq(numbers.length, count);
        for (uint256 slot; slot < count; ++slot) {
            assertEq(numbers[slot], 32 + slot);
            assertNotEq(found[slot].account, address(0));
            assertFalse(found[slot].attested);
            assertEq(found[slot].until, audit.until);
            assertEq(board.registrationOf(found[slot].account).freeSince, type(uint40).max);
            uint32[] memory segments = board.segmentsOf(task, 32 + slot);
            assertEq(segments.length, 1);
            assertEq(segments[0], board.segmentsOf(task, slot / each)[slot % each]);
            for (uint256 other; other < slot; ++other) {
                assertNotEq(found[other].account, found[slot].account);
            }
        }
    }

    /// @dev Slots and accounts computed by hand from one stream: twelve accounts with four slots each, in the
    /// order of their registration.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_draw_followsTheWord_succeeds(bytes32 word, uint16 chance_) public {
        chance = uint16(bound(chance_, 1, 10_000));
        _asked();
        bytes32 seed = _seedOf(word);
        uint256 due = _picks(seed, 15);
        bool[] memory taken = new bool[](accounts.length);
        for (uint256 k; k < accounts.length; ++k) {
            taken[k] = board.registrationOf(accounts[k]).freeSince == type(uint40).max;
        }
        _drawWith(word);
        assertEq(_audit().looking, due);
        DrawWords.Stream memory stream = DrawWords.start(seed);
        for (uint256 slot; slot < 4; ++slot) {
            stream.below(10_000);
        }
        for (uint256 slot; slot < 4; ++slot) {
            if (due >> slot & 1 == 0) {
                assertEq(_account(32 + slot), address(0));
                continue;
            }
            uint256 place = stream.below(48) / 4;
            while (taken[place]) place = stream.below(48) / 4;
            taken[place] = true;
            assertEq(_account(32 + slot), accounts[place]);
        }
    }

    /// @dev Nothing is picked: the task is audited, and its window is still that of the seats' draw.
    function test_draw_noPicks_succeeds() public {
        _start();
        uint64 until = market.taskOf(task).challengeUntil;
        _attest(0);
        _attest(1);
        _drawPicks(0);
        assertTrue(_audit().audited);
        assertFalse(_audit().pending);
        assertEq(_audit().pickedAt, 0);
        assertEq(market.taskOf(task).challengeUntil, until);
        assertEq(_free(drawer), 2 * DRAW_FEE);
        _settle();
        assertEq(_free(submitter), FUNDS - 50 * UNIT - 4 * SEAT_FEE - 2 * DRAW_FEE);
    }

    /// @dev A draw that picks nothing is executed late: an account that has just committed can still open a
    /// game, as after any draw.
    function test_draw_noPicksLate_keepsTheWindowOpen_succeeds() public {
        _asked();
        _reach(vm.getBlockTimestamp() + 1500);
        _drawPicks(0);
        assertEq(market.taskOf(task).challengeUntil, vm.getBlockTimestamp() + REST_OF_WINDOW);
        _settle();
    }

    // ------------------------------------------------------------------ the next levels

    /// @dev Each level picks among the attested looks of the level below; after the fourth nobody looks any
    /// more.
    function test_levels_fourAtMost_succeeds() public {
        (seats, each) = (3, 2);
        _looked(12);
        _attestSlots(1, 4);
        assertFalse(_audit().pending);
        _attestSlots(1, 8);
        assertTrue(_audit().pending);
        for (uint8 level = 2; level <= 4; ++level) {
            assertEq(_audit().level, level);
            assertEq(board.firstDraw().level, level);
            assertEq(_candidateSlots(level), level == 2 ? 12 : 4);
            _drawPicks(4);
            assertEq(_audit().looking, 4);
            assertEq(_audit().looked, 0);
            assertEq(board.segmentsOf(task, 32 * level + 2)[0], board.segmentsOf(task, 1)[0]);
            assertEq(market.taskOf(task).challengeUntil, _audit().until + REST_OF_WINDOW);
            _attestSlots(level, 4);
        }
        assertTrue(_audit().audited);
        assertFalse(_audit().pending);
        assertEq(_audit().looks, 5);
        assertEq(_audit().escrowDraws, 5);
        (uint256[] memory numbers,) = board.looksOf(task);
        assertEq(abi.encode(numbers), abi.encode(_list([uint256(34), 35, 66, 98, 130])));
        _settle();
        _releaseAll();
    }

    /// @dev There are never more looks than segments of seats: the last slots of a level then have no chance,
    /// and no further level follows.
    function test_levels_asManyLooksAsSegments_succeeds() public {
        _looked(7);
        _attestSlots(1, 7);
        // One more, of three possible ones.
        _drawPicks(1);
        assertEq(_audit().looks, 4);
        _attestSlots(2, 1);
        assertTrue(_audit().audited);
        assertEq(_audit().level, 2);
    }

    /// @dev The second level picks none.
    function test_levels_noPicks_succeeds() public {
        _looked(3);
        _attestSlots(1, 3);
        uint64 until = _audit().until + REST_OF_WINDOW;
        _drawPicks(0);
        assertTrue(_audit().audited);
        assertEq(_audit().looked, 0);
        assertEq(market.taskOf(task).challengeUntil, until);
        _settle();
    }

    // ------------------------------------------------------------------ nobody is found

    /// @dev All accounts have seats: the looks are given up by their draw.
    function test_draw_nobodyFound_succeeds() public {
        _resignAll();
        _looked(15);
        assertTrue(_audit().audited);
        assertEq(_audit().looking, 0);
        assertEq(_audit().looks, 4);
        (uint256[] memory numbers,) = board.looksOf(task);
        assertEq(numbers.length, 0);
        _settle();
        assertEq(_free(submitter), FUNDS - 50 * UNIT - 4 * SEAT_FEE - 2 * DRAW_FEE);
    }

    /// @dev One account for two looks: the other look is given up. Only the existing look may be looked at.
    function test_draw_oneFound_succeeds() public {
        _resignAll();
        vm.warp(vm.getBlockTimestamp() + 1);
        _register(1);
        _looked(3);
        uint256 looking = _audit().looking;
        assertTrue(looking == 1 || looking == 2);
        _attestSlots(1, looking);
        assertEq(_audit().looked, looking);
        assertEq(board.firstDraw().level, 2);
        _drawPicks(looking);
        assertTrue(_audit().audited);
        _settle();
        _releaseAll();
    }

    // ------------------------------------------------------------------ informers

    /// @dev A seat is emptied before the draw's round: the draw has no effect, the seat is redrawn, and then
    /// looks are requested again.
    function test_inform_beforeTheRound_succeeds() public {
        _asked();
        _inform(1, second);
        assertFalse(_audit().audited);
        vm.expectRevert(abi.encodeWithSelector(Refusals.DrawPending.selector, task));
        board.redraw(task);
        _drawWith(_wordOf(15));
        Audit memory audit = _audit();
        assertEq(audit.level, 0);
        assertEq(audit.looks, 0);
        assertEq(audit.pickedAt, 0);
        assertFalse(audit.audited);
        for (uint256 slot; slot < 4; ++slot) {
            assertEq(_account(32 + slot), address(0));
        }
        assertEq(_free(drawer), 2 * DRAW_FEE);
        _redraw();
        assertEq(board.firstDraw().level, 0);
        assertEq(board.firstDraw().seats, 2);
        _draw(task);
        assertFalse(_audit().pending);
        _attest(1);
        assertEq(board.firstDraw().level, 1);
        assertEq(_audit().escrowDraws, 3);
        _drawPicks(1);
        _attestSlots(1, 1);
        _drawPicks(0);
        assertEq(_audit().escrowDraws, 4);
        _settle();
        _releaseAll();
        // Four draws paid by the escrow, and one by the purse that the informed seat left.
        assertEq(_free(drawer), 5 * DRAW_FEE);
    }

    /// @dev Once picks are known, nobody can inform: it would save half of a lock.
    function test_inform_roundPublished_reverts() public {
        _asked();
        bytes32 salt = _committed(0, second);
        uint256 time = beacon.timeOf(board.firstDraw().round);
        vm.warp(time - 1);
        uint256 before = vm.snapshotState();
        vm.prank(second);
        looks.inform(task, 0, keccak256("digest"), salt);
        vm.revertToState(before);
        vm.warp(time);
        _expectLooksDrawn(0, salt);
        _drawPicks(0);
        _expectLooksDrawn(0, salt);
    }

    /// @dev The contract knows only the block's time. A proposer that has seen the word and may still date a
    /// block before the round informs on its own seat at the price of half of its lock, and so has the looks
    /// of the whole task drawn again: none of its seats is looked at by that word.
    function test_inform_backDated_succeeds() public {
        _asked();
        address own = _account(0);
        uint256 stake = _stakeOf(own);
        bytes32 salt = _committed(0, second);
        bytes32 seen = _wordOf(15);
        uint256 had = _free(second);
        vm.warp(beacon.timeOf(board.firstDraw().round) - 1);
        vm.prank(second);
        looks.inform(task, 0, keccak256("digest"), salt);
        assertEq(_stakeOf(own), stake - LOCK);
        assertEq(_free(second), had + LOCK / 2);
        assertEq(vault.burned(), LOCK / 2 - DRAW_FEE);
        _drawWith(seen);
        assertEq(_audit().looks, 0);
        assertEq(_audit().pickedAt, 0);
        _redraw();
        _draw(task);
        _attest(0);
        assertEq(board.firstDraw().level, 1);
        assertEq(board.firstDraw().seats, 0);
    }

    /// @dev Nobody can inform on a seat that is looked at, nor while another draw of looks is requested.
    function test_inform_looksDrawn_reverts() public {
        _asked();
        bytes32 salt = _committed(0, second);
        _drawPicks(3);
        _expectLooksDrawn(0, salt);
        _attestSlots(1, 1);
        _redraw();
        assertTrue(_audit().pending);
        _expectLooksDrawn(0, salt);
        _drawWith(0);
        _attestSlots(1, 2);
        assertEq(board.firstDraw().level, 2);
        _expectLooksDrawn(0, salt);
    }

    /// @dev Looks have salts too, but nobody can inform on a look.
    function test_inform_ofALook_reverts() public {
        _looked(1);
        _attest(32);
        _drawPicks(0);
        bytes32 salt = _committed(32, second);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAttested.selector, task, 32));
        vm.prank(second);
        looks.inform(task, 32, keccak256("digest"), salt);
    }

    // ------------------------------------------------------------------ inside

    function _expectLooksDrawn(uint256 seat, bytes32 salt) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.LooksDrawn.selector, task));
        vm.prank(second);
        looks.inform(task, seat, keccak256("digest"), salt);
    }

    /// @dev All accounts resign except two, which take the seats.
    function _resignAll() private {
        for (uint256 k = 2; k < accounts.length; ++k) {
            vm.prank(accounts[k]);
            board.resign();
        }
    }

    function _list(uint256[5] memory fixed_) private pure returns (uint256[] memory list) {
        list = new uint256[](5);
        for (uint256 k; k < 5; ++k) {
            list[k] = fixed_[k];
        }
    }
}
