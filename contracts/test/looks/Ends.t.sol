// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Looking} from "./Looking.sol";

/// @title The end of a task with looks at every stage: who is paid, what is left, who is freed.
contract LookEndsTest is Looking {
    uint256 private constant PRICE = 50 * uint256(UNIT);

    // ------------------------------------------------------------------ attestations

    /// @dev A look is paid out of the escrow when it attests: the fee of one segment.
    function test_attest_look_isPaid_succeeds() public {
        _looked(3);
        address account = _account(33);
        uint256 had = _free(account);
        uint256 escrow = _escrow();
        _attest(33);
        assertEq(_free(account), had + SEAT_FEE);
        assertEq(_escrow(), escrow - SEAT_FEE);
        assertEq(_audit().looking, 1);
        assertEq(_audit().looked, 2);
        assertTrue(board.seatOf(task, 33).attested);
        assertNotEq(board.attestationOf(task, 33), 0);
        assertEq(_audit().attested, 2);
    }

    function test_attest_look_refused_reverts() public {
        _looked(3);
        address account = _account(32);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, account, anyone));
        vm.prank(anyone);
        board.attest(task, 32, 0, 0);
        _attest(32);
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyAttested.selector, task, 32));
        vm.prank(account);
        board.attest(task, 32, 0, 0);
        // Looks that were not picked, a juror, and a number out of range.
        uint256[4] memory none = [uint256(34), 64, 160, type(uint256).max];
        for (uint256 k; k < none.length; ++k) {
            vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), anyone));
            vm.prank(anyone);
            board.attest(task, none[k], 0, 0);
            assertEq(_account(none[k]), address(0));
        }
        uint64 until = _audit().until;
        vm.warp(until + 1);
        address late = _account(33);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        vm.prank(late);
        board.attest(task, 33, 0, 0);
        board.redraw(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), late));
        vm.prank(late);
        board.attest(task, 33, 0, 0);
    }

    function test_segmentsOf_noSuchLook_reverts() public {
        _looked(1);
        uint256[3] memory none = [uint256(36), 160, 2];
        for (uint256 k; k < none.length; ++k) {
            vm.expectRevert(abi.encodeWithSelector(Refusals.UnknownSeat.selector, task, none[k], 2));
            board.segmentsOf(task, none[k]);
        }
    }

    // ------------------------------------------------------------------ settle

    /// @dev Seats get their fees at the end; looks got theirs earlier. The solver gets its price, the drawer
    /// its fees, the submitter the rest of the escrow.
    function test_settle_paysEverybody_succeeds() public {
        _looked(3);
        _attestSlots(1, 3);
        _drawPicks(0);
        address[2] memory seated = [_account(0), _account(1)];
        address[2] memory looking = [_account(32), _account(33)];
        _settle();
        for (uint256 k; k < 2; ++k) {
            assertEq(_free(seated[k]), FUNDS - SEAT_STAKE + 2 * SEAT_FEE);
            assertEq(_free(looking[k]), FUNDS - SEAT_STAKE + SEAT_FEE);
        }
        assertEq(_free(solver), FUNDS + PRICE);
        // Four segments of seats, two of looks; three draws.
        assertEq(_free(submitter), FUNDS - PRICE - 6 * SEAT_FEE - 3 * DRAW_FEE);
        assertEq(_free(drawer), 3 * DRAW_FEE);
        assertEq(_escrow(), 0);
        assertEq(vault.burned(), 0);
        _releaseAll();
    }

    /// @dev As many looks as segments, on four levels.
    function test_settle_fourLevels_succeeds() public {
        (seats, each) = (4, 1);
        _start();
        _attestSlots(0, 15);
        _drawPicks(1);
        for (uint256 level = 1; level < 4; ++level) {
            _attestSlots(level, 1);
            _drawPicks(1);
        }
        _attestSlots(4, 1);
        assertEq(_audit().looks, 4);
        assertEq(_escrow(), 100 * UNIT + 4 * SEAT_FEE + 7 * DRAW_FEE);
        _settle();
        assertEq(_free(submitter), FUNDS - PRICE - 8 * SEAT_FEE - 5 * DRAW_FEE);
    }

    /// @dev The window is over while looks are awaited: nothing is settled until they are redrawn or given
    /// up.
    function test_settle_looksAwaited_reverts() public {
        _asked();
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.TooEarly.selector, type(uint64).max, vm.getBlockTimestamp())
        );
        market.settle(task);
        _drawPicks(1);
        _reach(uint256(market.taskOf(task).challengeUntil) + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAudited.selector, task));
        market.settle(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotVoidable.selector, task));
        market.voidTask(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotStalled.selector, task));
        market.stall(task);
        _redraw();
        _drawWith(0);
        _attest(32);
        _drawPicks(0);
        _settle();
    }

    // ------------------------------------------------------------------ conviction

    /// @dev The solver is convicted while a draw of looks is pending: the draw pays its executor, binds
    /// nobody, and is the last.
    function test_convict_looksAsked_succeeds() public {
        _asked();
        _convict();
        assertEq(_escrow(), DRAW_FEE);
        _drawWith(_wordOf(15));
        assertEq(_escrow(), 0);
        assertEq(_account(32), address(0));
        assertEq(_audit().looking, 0);
        assertFalse(_audit().audited);
        _releaseAll();
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        board.redraw(task);
    }

    /// @dev The solver is convicted while looks are awaited: those that attested were paid, the others can no
    /// longer attest, and nobody counts as silent.
    function test_convict_looksAwaited_succeeds() public {
        _looked(3);
        _attest(32);
        address waiting = _account(33);
        _convict();
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        vm.prank(waiting);
        board.attest(task, 33, 0, 0);
        assertEq(_escrow(), 0);
        _releaseAll();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRelease.selector, task, 33));
        board.release(task, 33);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRelease.selector, task, 34));
        board.release(task, 34);
    }

    /// @dev The solver is convicted while the second level is requested.
    function test_convict_secondLevelAsked_succeeds() public {
        _looked(3);
        _attestSlots(1, 3);
        bytes32 word = _wordOf(3);
        _convict();
        _drawWith(word);
        assertEq(_account(64), address(0));
        _releaseAll();
    }

    /// @dev Ending a task whose draw of looks is public changes no other draw: it finds the same accounts,
    /// which become free too late.
    function test_convict_looksPublic_bindsAsMany_succeeds() public {
        _asked();
        bytes32 word = _wordOf(15);
        uint256 before = vm.snapshotState();
        _drawWith(word);
        address[4] memory due;
        for (uint256 slot; slot < 4; ++slot) {
            due[slot] = _account(32 + slot);
        }
        vm.revertToState(before);
        _convict();
        _drawWith(word);
        for (uint256 slot; slot < 4; ++slot) {
            assertEq(board.registrationOf(due[slot]).freeSince, vm.getBlockTimestamp());
        }
    }

    // ------------------------------------------------------------------ claims on the stake

    /// @dev A look that spoke up gets a game's cost, and the fee of one segment unless it attested. `payFee`
    /// is not for looks.
    function test_compensate_looks_succeeds() public {
        _looked(3);
        _attest(32);
        GameId[2] memory games =
            [_challengeBy(_account(32), _segment(32)), _challengeBy(_account(33), _segment(33))];
        _lapse(games[0]);
        uint256[2] memory had = [_free(_account(32)), _free(_account(33))];
        commitments.compensate(task, 32, games[0]);
        commitments.compensate(task, 33, games[1]);
        assertEq(_free(_account(32)), had[0] + GAME_COST);
        assertEq(_free(_account(33)), had[1] + GAME_COST + SEAT_FEE);
        for (uint8 look = 32; look < 35; ++look) {
            vm.expectRevert(abi.encodeWithSelector(Refusals.NothingOwed.selector, task, look));
            commitments.payFee(task, look);
        }
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingOwed.selector, task, 32));
        commitments.compensate(task, 32, games[0]);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotOfSeat.selector, task, 34, games[0]));
        commitments.compensate(task, 34, games[0]);
    }

    /// @dev A look commits at the single bond, like a seat, and may open late.
    function test_openLate_look_succeeds() public {
        _looked(1);
        address looker = _account(32);
        GameId game_ = _challengeBy(second, SegmentIndex.wrap(1));
        vm.warp(game.gameOf(game_).deadline);
        SegmentIndex segment = _segment(32);
        bytes32 salt = keccak256("salt");
        bytes32 commitment = _commitment(task, segment, looker, salt);
        vm.prank(looker);
        commitments.commit(task, 32, commitment);
        vm.roll(vm.getBlockNumber() + 1);
        _lapse(game_);
        uint256 had = _free(looker);
        vm.prank(looker);
        commitments.openLate(task, segment, salt, 32);
        assertEq(_free(looker), had + BOND + GAME_COST + SEAT_FEE);
    }

    // ------------------------------------------------------------------ inside

    /// @dev Convicts the solver, which is silent in a stranger's game.
    function _convict() private {
        _lapse(_challengeBy(second, SegmentIndex.wrap(1)));
    }

    function _lapse(GameId id) private {
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
    }

    function _segment(uint256 look) private view returns (SegmentIndex) {
        return SegmentIndex.wrap(board.segmentsOf(task, look)[0]);
    }

    function _challengeBy(address who, SegmentIndex segment) private returns (GameId) {
        bytes32 salt = _commit(task, segment, who);
        uint32 number = SegmentIndex.unwrap(segment);
        (Leaf memory before, Leaf memory afterwards) =
            (_leaf(checkpoints, number - 1), _leaf(checkpoints, number));
        vm.prank(who);
        return game.challenge(task, segment, salt, before, afterwards);
    }
}
