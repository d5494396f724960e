// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Digests} from "../../src/libraries/Digests.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Audit} from "../../src/types/Seats.sol";
import {Claiming} from "./Claiming.sol";

/// @title Votes of jurors, and functions where a juror's number must not work.
contract VotesTest is Claiming {
    function test_attest_votes_succeeds() public {
        _seated(2);
        Audit memory before = _audit();
        _voteYes(5);
        address account = _account(FIRST + 1);
        vm.expectEmit();
        emit IAuditBoard.Attested(task, FIRST + 1, account, 0, 0);
        _voteNo(2);
        (uint256 claimant, bool pending, uint64 until, uint256 yes, uint256 no) = board.juryOf(task);
        assertEq(claimant, 1);
        assertFalse(pending);
        assertEq(until, before.until);
        assertEq(yes, 5);
        assertEq(no, 2);
        bytes32 due = Digests.attestation(_digest(FIRST, 2), Digests.saltHash(_saltOf(FIRST)));
        assertEq(board.attestationOf(task, FIRST), due);
        // A no requires no opening.
        assertEq(board.attestationOf(task, FIRST + 1), 0);
        assertTrue(board.seatOf(task, FIRST + 1).attested);
        // Nothing else is changed, and nobody is paid.
        assertEq(abi.encode(_audit()), abi.encode(before));
        assertEq(_free(account), FUNDS - SEAT_STAKE);
    }

    /// @dev A vote with only one nonzero word is a yes that cannot be opened.
    function test_attest_halfAVote_isYes_succeeds() public {
        _seated(2);
        address account = _account(FIRST);
        vm.prank(account);
        board.attest(task, FIRST, 0, keccak256("salt hash"));
        account = _account(FIRST + 1);
        vm.prank(account);
        board.attest(task, FIRST + 1, keccak256("digest"), 0);
        (,,, uint256 yes,) = board.juryOf(task);
        assertEq(yes, 3);
    }

    function test_attest_vote_refused_reverts() public {
        _seated(2);
        address account = _account(FIRST);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, account, anyone));
        vm.prank(anyone);
        board.attest(task, FIRST, 0, 0);
        // Slots without a juror, and numbers out of range.
        uint256[3] memory none = [FIRST + 7, FIRST + 31, FIRST + 32];
        for (uint256 k; k < 3; ++k) {
            vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), account));
            vm.prank(account);
            board.attest(task, none[k], 0, 0);
        }
        _voteNo(1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyAttested.selector, task, FIRST));
        vm.prank(account);
        board.attest(task, FIRST, "digest", "salt hash");
        uint64 until = _audit().until;
        vm.warp(until + 1);
        account = _account(FIRST + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        vm.prank(account);
        board.attest(task, FIRST + 1, 0, 0);
        vm.warp(until);
        _voteYes(2);
    }

    function test_attest_vote_overTask_reverts() public {
        _seated(2);
        _convict();
        vm.warp(_audit().until);
        address account = _account(FIRST);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        vm.prank(account);
        board.attest(task, FIRST, 0, 0);
    }

    /// @dev A juror is not a look. Otherwise its number would be a look that checks a look of level 4, whose
    /// lock it would take.
    function test_looks_jurorsNumber_reverts() public {
        (seats, each, chance) = (1, 1, 10_000);
        _start();
        _attest(0);
        _drawPicks(1);
        _claim(32, 1);
        _drawWith(0);
        _voteYes(1);
        address juror = _account(FIRST);
        bytes32[] memory path;
        bytes memory refusal = abi.encodeWithSelector(Refusals.NoLook.selector, task, FIRST);
        vm.expectRevert(refusal);
        looks.reveal(task, FIRST, 0, 0, 0, path);
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        vm.expectRevert(refusal);
        looks.takeUnrevealed(task, FIRST);
        // One level higher, its number would be a look that checks the juror.
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoLook.selector, task, FIRST + 32));
        looks.takeUnrevealed(task, FIRST + 32);
        bytes32 salt = _committed(FIRST, second);
        bytes32 digest = _digest(FIRST, 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAttested.selector, task, FIRST));
        vm.prank(second);
        looks.inform(task, FIRST, digest, salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.UnknownSeat.selector, task, FIRST, 1));
        board.segmentsOf(task, FIRST);
        assertFalse(board.seatOf(task, FIRST).caught);
        assertEq(_stakeOf(juror), SEAT_STAKE);
    }

    /// @dev A juror has no claim on the stake, and its bond doubles like a stranger's.
    function test_commitments_jurorsNumber_reverts() public {
        _seated(2);
        _voteYes(1);
        address juror = _account(FIRST);
        bytes memory refusal = abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), juror);
        vm.expectRevert(refusal);
        commitments.bondOf(task, uint8(FIRST), juror);
        vm.expectRevert(refusal);
        vm.prank(juror);
        commitments.commit(task, uint8(FIRST), "commitment");
        bytes32 salt = _commit(task, SegmentIndex.wrap(1), juror);
        (Leaf memory before, Leaf memory afterwards) = (_leaf(checkpoints, 0), _leaf(checkpoints, 1));
        vm.prank(juror);
        GameId id = game.challenge(task, SegmentIndex.wrap(1), salt, before, afterwards);
        vm.warp(game.gameOf(id).deadline);
        bytes32 late = _commit(task, UNKNOWN, juror);
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotOfSeat.selector, task, FIRST, id));
        commitments.compensate(task, uint8(FIRST), id);
        vm.expectRevert(refusal);
        vm.prank(juror);
        commitments.openLate(task, UNKNOWN, late, uint8(FIRST));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingOwed.selector, task, FIRST));
        commitments.payFee(task, uint8(FIRST));
        vm.prank(juror);
        commitments.openLate(task, UNKNOWN, late, NO_SEAT);
        assertEq(_free(juror), FUNDS - SEAT_STAKE + REWARD);
    }
}
