// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {PendingDraw, Registration} from "../../src/types/Seats.sol";
import {Looking} from "./Looking.sol";

/// @title Looks whose accounts are silent, and draws of looks that nobody executes.
contract LookSilenceTest is Looking {
    /// @dev Penalty of a seat: the fee of two segments, and a draw fee.
    uint256 private constant PENALTY = 2 * uint256(SEAT_FEE) + DRAW_FEE;

    // ------------------------------------------------------------------ silence

    /// @dev Like a silent seat, the account loses a seat's fee, which burns, and the draw fee, which pays for
    /// the next draw.
    function test_redraw_silentLook_succeeds() public {
        _looked(6);
        _attest(33);
        address silent = _account(34);
        uint64 until = _audit().until;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        board.redraw(task);
        vm.warp(until + 1);
        uint256 escrow = _escrow();
        uint64 round = beacon.roundFrom(until + 1 + 4);
        vm.expectEmit();
        emit IAuditBoard.Silent(task, 34, silent, PENALTY);
        vm.expectEmit();
        emit IAuditBoard.DrawAsked(task, 3, 1, round, 4);
        vm.prank(anyone);
        board.redraw(task);

        Registration memory entry = board.registrationOf(silent);
        assertTrue(entry.suspended);
        assertEq(_remaining(entry.lock), SEAT_STAKE - PENALTY);
        assertEq(vault.burned(), PENALTY - DRAW_FEE);
        assertEq(_account(34), address(0));
        PendingDraw memory first = board.firstDraw();
        assertEq(first.level, 1);
        assertEq(first.seats, 4);
        assertEq(_remaining(first.purse), DRAW_FEE);
        assertEq(market.taskOf(task).challengeUntil, type(uint64).max);
        assertFalse(market.taskOf(task).owesDraw);

        uint40 pickedAt = _audit().pickedAt;
        _drawWith(0);
        assertEq(_free(drawer), 3 * DRAW_FEE);
        assertEq(_escrow(), escrow);
        assertEq(_audit().lookDraws, 2);
        assertEq(_audit().looks, 2);
        assertEq(_audit().looking, 4);
        assertEq(_audit().looked, 2);
        assertEq(_audit().until, vm.getBlockTimestamp() + ATTEST_PERIOD);
        // An account that is looked at has its time from the draw that picked it.
        assertEq(_audit().pickedAt, pickedAt);
        assertNotEq(_account(34), silent);
        assertNotEq(_account(34), address(0));
        _attest(34);
        assertEq(board.firstDraw().level, 2);
        assertEq(_audit().looked, 6);
    }

    /// @dev Both are silent: the first one's account pays for the draw, the other's penalty burns entirely.
    function test_redraw_twoSilentLooks_succeeds() public {
        _looked(3);
        (address one, address two) = (_account(32), _account(33));
        _redraw();
        assertEq(board.firstDraw().seats, 3);
        assertEq(vault.burned(), 2 * PENALTY - DRAW_FEE);
        assertEq(_stakeOf(one), SEAT_STAKE - PENALTY);
        assertEq(_stakeOf(two), SEAT_STAKE - PENALTY);
    }

    /// @dev After three draws of a level, silent looks are given up and pay for no draw.
    function test_redraw_givenUp_succeeds() public {
        _looked(3);
        _attest(32);
        for (uint256 n = 2; n <= 3; ++n) {
            _redraw();
            assertEq(_audit().lookDraws, n);
            _drawWith(bytes32(n));
        }
        address silent = _account(33);
        uint256 burned = vault.burned();
        _reach(uint256(_audit().until) + 1);
        vm.expectEmit();
        emit IAuditBoard.Silent(task, 33, silent, PENALTY);
        board.redraw(task);
        assertEq(vault.burned() - burned, PENALTY);
        assertEq(_account(33), address(0));
        assertEq(_audit().looking, 0);
        // The attested look may be looked at: the escrow pays for that draw.
        assertEq(board.firstDraw().level, 2);
        assertEq(board.firstDraw().purse, 0);
        assertEq(_candidateSlots(2), 1);
        assertEq(_audit().lookDraws, 1);
        _drawPicks(0);
        _settle();
        _releaseAll();
    }

    function test_redraw_allGivenUp_succeeds() public {
        _looked(3);
        for (uint256 n = 2; n <= 3; ++n) {
            _redraw();
            _drawWith(bytes32(n));
        }
        _redraw();
        assertTrue(_audit().audited);
        assertFalse(_audit().pending);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRedraw.selector, task));
        board.redraw(task);
        _settle();
        _releaseAll();
        // Six silent accounts, each of which can be drawn again.
        for (uint256 k; k < accounts.length; ++k) {
            if (!board.registrationOf(accounts[k]).suspended) continue;
            vm.prank(accounts[k]);
            board.resume();
            assertEq(_stakeOf(accounts[k]), SEAT_STAKE);
        }
    }

    /// @dev A look that is redrawn may find nobody: it is given up.
    function test_redraw_nobodyFound_succeeds() public {
        for (uint256 k = 3; k < accounts.length; ++k) {
            vm.prank(accounts[k]);
            board.resign();
        }
        _looked(1);
        _redraw();
        _drawWith(0);
        assertTrue(_audit().audited);
        assertEq(_account(32), address(0));
        _settle();
        _releaseAll();
    }

    /// @dev A task with the maximum number of draws can still be attested, and its looks end.
    function test_redraw_noNumberLeft_succeeds() public {
        (seats, each, chance) = (1, 1, 10_000);
        _start();
        while (_audit().draws < 254) _silentSeat();
        uint256 before = vm.snapshotState();
        _silentSeat();
        _attest(0);
        assertTrue(_audit().audited);
        vm.revertToState(before);
        _attest(0);
        assertEq(_audit().draws, 255);
        _drawPicks(1);
        _redraw();
        assertTrue(_audit().audited);
        assertFalse(_audit().pending);
        _settle();
    }

    // ------------------------------------------------------------------ draws that nobody executes

    function test_lapse_firstLooks_succeeds() public {
        _asked();
        uint64 until = uint64(beacon.timeOf(board.firstDraw().round)) + STALL_PERIOD;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        board.lapse(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotStalled.selector, task));
        market.stall(task);
        vm.warp(until + 1);
        uint256 had = _free(anyone);
        vm.prank(anyone);
        board.lapse(task);
        assertEq(_free(anyone), had + DRAW_FEE);
        assertTrue(_audit().audited);
        assertFalse(_audit().pending);
        assertFalse(market.taskOf(task).owesDraw);
        assertEq(market.taskOf(task).challengeUntil, vm.getBlockTimestamp() + REST_OF_WINDOW);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotStalled.selector, task));
        board.lapse(task);
        // The queue continues, and executing the draw changes nothing.
        bytes memory audit = abi.encode(_audit());
        bytes memory entry = abi.encode(market.taskOf(task));
        had = _free(drawer);
        _drawWith(0);
        assertEq(abi.encode(_audit()), audit);
        assertEq(abi.encode(market.taskOf(task)), entry);
        assertEq(_free(drawer), had);
        assertEq(_account(32), address(0));
        bytes32 salt = _committed(0, second);
        vm.expectRevert(abi.encodeWithSelector(Refusals.LooksDrawn.selector, task));
        vm.prank(second);
        looks.inform(task, 0, keccak256("digest"), salt);
        _settle();
        _releaseAll();
    }

    /// @dev A lapsed draw of silent looks ends them. Its purse still pays its executor, and it binds none of
    /// the accounts that it finds.
    function test_lapse_silentLooks_succeeds() public {
        _looked(3);
        _attest(32);
        _redraw();
        _reach(beacon.timeOf(_audit().round) + STALL_PERIOD + 1);
        uint256 had = _free(anyone);
        vm.prank(anyone);
        board.lapse(task);
        assertEq(_free(anyone), had);
        assertTrue(_audit().audited);
        assertEq(_audit().looking, 0);
        had = _free(drawer);
        _drawWith(0);
        assertEq(_free(drawer), had + DRAW_FEE);
        assertEq(_account(33), address(0));
        assertTrue(_audit().audited);
        assertTrue(board.seatOf(task, 32).attested);
        _settle();
        _releaseAll();
    }

    /// @dev A seat is empty when the looks lapse: it is redrawn, and looks are requested again. The old entry
    /// of the queue fills no seats and does not take the fee of the new draw.
    function test_lapse_emptiedSeat_succeeds() public {
        _asked();
        _inform(1, second);
        _reach(beacon.timeOf(_audit().round) + STALL_PERIOD + 1);
        board.lapse(task);
        assertFalse(_audit().audited);
        assertEq(_audit().level, 0);
        _redraw();
        assertTrue(_audit().pending);
        uint256 had = _free(drawer);
        _drawWith(0);
        assertEq(_free(drawer), had);
        assertTrue(_audit().pending);
        _draw(task);
        assertEq(_free(drawer), had + DRAW_FEE);
        _attest(1);
        assertEq(board.firstDraw().level, 1);
        _drawPicks(0);
        _settle();
        _releaseAll();
    }

    function test_lapse_notOfLooks_reverts() public {
        _start();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotStalled.selector, task));
        board.lapse(task);
        _redraw();
        _reach(beacon.timeOf(_audit().round) + STALL_PERIOD + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotStalled.selector, task));
        board.lapse(task);
        market.stall(task);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Unpaid)
        );
        board.lapse(task);
    }

    // ------------------------------------------------------------------ inside

    /// @dev The only seat is silent, and is redrawn with an account; the silent account can be drawn again
    /// later.
    function _silentSeat() private {
        address silent = _account(0);
        _redraw();
        vm.prank(silent);
        board.resume();
        _drawWith(bytes32(uint256(_audit().draws)));
        assertNotEq(_account(0), address(0));
    }
}
