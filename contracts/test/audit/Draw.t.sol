// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {DrawWords} from "../../src/libraries/DrawWords.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {PendingDraw, Seat} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title The queue of draws, the drawn accounts, attestations and releases.
contract DrawTest is Deployment {
    using DrawWords for DrawWords.Stream;

    // ------------------------------------------------------------------ the queue

    function test_draw_outOfOrder_reverts() public {
        (TaskId one, TaskId two) = (_assigned(1), _assigned(1));
        _submit(two);
        _submit(one);
        uint64 round = board.firstDraw().round;
        vm.warp(beacon.timeOf(round) + 100);
        (bytes memory signature, MapHints[2] memory hints) = _round(round);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotFirst.selector, two, one));
        board.draw(one, signature, hints);
        _draw(two);
        assertEq(board.firstDraw().task, TaskId.unwrap(one));
        _draw(one);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotFirst.selector, 0, one));
        board.draw(one, signature, hints);
        assertEq(board.firstDraw().task, 0);
    }

    function test_submit_asksForADraw_succeeds() public {
        TaskId task = _assigned(1);
        uint64 round = beacon.roundFrom(uint64(block.timestamp) + DRAW_DELAY);
        vm.expectEmit();
        emit IAuditBoard.DrawAsked(task, 1, 0, round, 7);
        _submit(task);
        PendingDraw memory entry = board.firstDraw();
        assertEq(entry.task, TaskId.unwrap(task));
        assertEq(entry.seats, 7);
        assertEq(entry.round, round);
        assertEq(entry.fixedAt, block.timestamp);
        assertEq(entry.purse, 0);
        assertTrue(board.auditOf(task).pending);
        assertEq(board.auditOf(task).escrowDraws, 1);
    }

    /// @dev A signature of another round changes nothing.
    function test_draw_otherRound_reverts() public {
        TaskId task = _submitted(1);
        uint64 round = board.firstDraw().round;
        vm.warp(beacon.timeOf(round) + 100);
        (bytes memory signature,) = _round(round + 1);
        MapHints[2] memory hints = _hints(round);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotSigned.selector, round));
        board.draw(task, signature, hints);
        hints = _hints(round + 1);
        vm.expectPartialRevert(Refusals.WrongHint.selector);
        board.draw(task, signature, hints);
        assertEq(board.firstDraw().task, TaskId.unwrap(task));
        _draw(task);
    }

    /// @dev A draw can be executed at any later time, by anyone, whom the escrow pays. The window then
    /// begins.
    function test_draw_late_succeeds() public {
        TaskId task = _submitted(1);
        vm.warp(block.timestamp + STALL_PERIOD);
        uint64 round = board.firstDraw().round;
        bytes32 seed = _seedOf(task, 1, round);
        (bytes memory signature, MapHints[2] memory hints) = _round(round);
        vm.expectEmit();
        emit IAuditBoard.Drawn(task, 1, seed, drawer);
        vm.prank(drawer);
        board.draw(task, signature, hints);
        assertEq(vault.free(drawer), DRAW_FEE);
        assertEq(market.taskOf(task).challengeUntil, block.timestamp + _terms().challengePeriod);
        assertFalse(market.taskOf(task).owesDraw);
        assertEq(board.auditOf(task).drawnAt, block.timestamp);
        assertEq(board.auditOf(task).until, block.timestamp + _terms().attestPeriod);
        assertEq(board.auditOf(task).seed, seed);
    }

    // ------------------------------------------------------------------ who is drawn

    /// @dev Compared with a draw computed by hand. The seed includes the chain id, so a different id changes
    /// all words.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_draw_followsTheSeed_succeeds(uint64 chain) public {
        vm.chainId(bound(chain, 1, type(uint64).max));
        _registered("level 3", 3);
        _registered("level 0", 0);
        Terms memory terms = _terms();
        terms.verifiers = 4;
        TaskId task = _submitted(terms, 1);
        uint64 round = board.firstDraw().round;
        _draw(task);
        // Slots 0 to 7 belong to level 3, then two to each of the six verifiers, and one to level 0.
        DrawWords.Stream memory stream = DrawWords.start(_seedOf(task, 1, round));
        address[] memory accounts = _accounts(task);
        for (uint256 seat; seat < 4; ++seat) {
            address due = _slotOf(stream.below(21));
            while (_isAmong(due, accounts, seat)) due = _slotOf(stream.below(21));
            assertEq(accounts[seat], due);
            assertEq(board.registrationOf(due).freeSince, type(uint40).max);
        }
    }

    /// @dev An account that registered after a task was posted is not drawn for it.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_draw_lateRegistration_succeeds(uint64 chain) public {
        vm.chainId(bound(chain, 1, type(uint64).max));
        TaskId task = _post();
        address late = _registered("late", 10);
        vm.prank(solver);
        market.bid(task, 1);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
        _submit(task);
        _draw(task);
        address[] memory accounts = _accounts(task);
        for (uint256 i; i < 3; ++i) {
            assertNotEq(accounts[i], late);
            assertNotEq(accounts[i], address(0));
        }
    }

    /// @dev An account has one seat at a time, in all tasks.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_draw_boundAccounts_succeeds(uint64 chain) public {
        vm.chainId(bound(chain, 1, type(uint64).max));
        (TaskId one, TaskId two) = (_drawn(1), _drawn(1));
        address[] memory first = _accounts(one);
        address[] memory second = _accounts(two);
        for (uint256 i; i < 3; ++i) {
            if (second[i] == address(0)) continue;
            assertFalse(_isAmong(second[i], first, 3));
            assertFalse(_isAmong(second[i], second, i));
        }
    }

    /// @dev More seats than accounts: the seats for which nobody was found stay empty.
    function test_draw_tooFewAccounts_succeeds() public {
        for (uint256 i = 1; i < VERIFIERS; ++i) {
            vm.prank(verifiers[i]);
            board.resign();
        }
        TaskId task = _submitted(1);
        _draw(task);
        address[] memory accounts = _accounts(task);
        assertEq(accounts[0], verifiers[0]);
        assertEq(accounts[1], address(0));
        assertEq(accounts[2], address(0));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), address(this)));
        board.attest(task, 1, 0, 0);
    }

    function test_segmentsOf_followTheFirstSeed_succeeds() public {
        TaskId task = _submitted(1);
        assertEq(board.seatsOf(task).length, 0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotDrawn.selector, task));
        board.segmentsOf(task, 0);
        bytes32 seed = _seedOf(task, 1, board.firstDraw().round);
        _draw(task);
        uint32[][3] memory segments;
        for (uint256 i; i < 3; ++i) {
            segments[i] = DrawWords.start(keccak256(abi.encode(seed, i))).distinct(SEGMENTS, 2);
            assertEq(_wide(board.segmentsOf(task, i)), _wide(segments[i]));
        }
        vm.expectRevert(abi.encodeWithSelector(Refusals.UnknownSeat.selector, task, 3, 3));
        board.segmentsOf(task, 3);
        _silence(task);
        board.redraw(task);
        _draw(task);
        assertEq(_wide(board.segmentsOf(task, 1)), _wide(segments[1]));
    }

    // ------------------------------------------------------------------ attest

    function test_attest_byItsAccount_succeeds() public {
        TaskId task = _drawn(1);
        address account = board.seatsOf(task)[1].account;
        vm.warp(board.auditOf(task).until);
        vm.expectEmit();
        emit IAuditBoard.Attested(task, 1, account, DIGEST, keccak256("salt hash"));
        vm.prank(account);
        board.attest(task, 1, DIGEST, keccak256("salt hash"));
        assertEq(board.attestationOf(task, 1), keccak256(abi.encode(DIGEST, keccak256("salt hash"))));
        assertEq(board.attestationOf(task, 0), 0);
        Seat[] memory seats = board.seatsOf(task);
        assertTrue(seats[1].attested);
        assertFalse(seats[0].attested);
        assertEq(board.auditOf(task).attested, 1);
    }

    function test_attest_byStranger_reverts() public {
        TaskId task = _drawn(1);
        address[] memory accounts = _accounts(task);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, accounts[0], accounts[1]));
        vm.prank(accounts[1]);
        board.attest(task, 0, 0, 0);
    }

    function test_attest_unknownSeat_reverts() public {
        TaskId task = _drawn(1);
        bytes memory refusal = abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), address(this));
        uint256[3] memory unknown = [uint256(3), 32, type(uint256).max];
        for (uint256 i; i < 3; ++i) {
            vm.expectRevert(refusal);
            board.attest(task, unknown[i], 0, 0);
        }
    }

    function test_attest_twice_reverts() public {
        TaskId task = _drawn(1);
        _attest(task, 0);
        address account = board.seatsOf(task)[0].account;
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyAttested.selector, task, 0));
        vm.prank(account);
        board.attest(task, 0, 0, 0);
    }

    function test_attest_late_reverts() public {
        TaskId task = _drawn(1);
        address account = board.seatsOf(task)[0].account;
        uint64 until = uint64(block.timestamp) + _terms().attestPeriod;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        vm.prank(account);
        board.attest(task, 0, 0, 0);
    }

    function test_attest_slashed_reverts() public {
        TaskId task = _drawn(1);
        _convict(task);
        address account = board.seatsOf(task)[0].account;
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        vm.prank(account);
        board.attest(task, 0, 0, 0);
    }

    // ------------------------------------------------------------------ release

    /// @dev Anyone can release each seat once, but not before the task is over.
    function test_release_taskOver_succeeds() public {
        TaskId task = _drawn(1);
        address account = board.seatsOf(task)[0].account;
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Submitted)
        );
        board.release(task, 0);
        _convict(task);
        vm.expectEmit();
        emit IAuditBoard.Released(task, 0, account);
        board.release(task, 0);
        assertTrue(board.seatsOf(task)[0].released);
        assertEq(board.registrationOf(account).freeSince, block.timestamp);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRelease.selector, task, 0));
        board.release(task, 0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRelease.selector, task, 3));
        board.release(task, 3);
        // The account keeps its whole stake: the task ended before it was silent.
        assertEq(_remaining(board.registrationOf(account).lock), SEAT_STAKE);
    }

    // ------------------------------------------------------------------ inside

    function _seedOf(TaskId task, uint8 number, uint64 round) private view returns (bytes32) {
        bytes32 root = market.taskOf(task).root;
        return keccak256(abi.encode(block.chainid, address(board), task, root, number, _word(round)));
    }

    function _slotOf(uint256 slot) private returns (address) {
        if (slot < 8) return makeAddr("level 3");
        if (slot < 20) return verifiers[(slot - 8) / 2];
        return makeAddr("level 0");
    }

    function _isAmong(address account, address[] memory list, uint256 count) private pure returns (bool) {
        for (uint256 i; i < count; ++i) {
            if (list[i] == account) return true;
        }
        return false;
    }

    function _wide(uint32[] memory numbers) private pure returns (uint256[] memory wide) {
        wide = new uint256[](numbers.length);
        for (uint256 i; i < numbers.length; ++i) {
            wide[i] = numbers[i];
        }
    }
}
