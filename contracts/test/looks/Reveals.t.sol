// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Digesting} from "./Digesting.sol";

/// @title A seat or look that is looked at opens its digest, or loses its lock.
contract RevealsTest is Digesting {
    // ------------------------------------------------------------------ in time

    /// @dev Each segment of each seat, by anyone who has the secret.
    function testFuzz_reveal_everySlot_succeeds(uint8 slot, uint8 thinning_) public {
        uint256 look = 32 + slot % 4;
        thinning = uint8(1 << thinning_ % 3);
        _looked(1 << slot % 4);
        Shown memory shown = _shown(look);
        bytes32 salt = _saltOf(_lookedAt(look));
        assertEq(looks.lookOf(task, look).revealed, 0);
        vm.expectEmit();
        emit ILooks.Revealed(task, look, salt, shown.root);
        _revealWith(look, shown);
        assertEq(looks.lookOf(task, look).revealed, keccak256(abi.encode(salt, shown.root)));
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyRevealed.selector, task, look));
        looks.takeUnrevealed(task, look);
    }

    /// @dev A look of the second level: the digest of a look covers its one segment.
    function test_reveal_secondLevel_succeeds() public {
        _looked(2);
        _attest(33);
        _drawPicks(2);
        Shown memory shown = _shown(65);
        assertEq(shown.path.length, 0);
        vm.expectEmit();
        emit ILooks.Revealed(task, 65, _saltOf(33), _segmentRoot(33, _segmentOf(65)));
        _revealWith(65, shown);
        // The look of the first level has its time again, counted from this draw.
        _reveal(33);
    }

    function test_reveal_late_reverts() public {
        _looked(3);
        (Shown memory first, Shown memory other) = (_shown(32), _shown(33));
        uint64 until = _audit().pickedAt + MOVE_TIME;
        vm.warp(until);
        _revealWith(32, first);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        _revealWith(33, other);
    }

    function test_reveal_twice_reverts() public {
        _looked(1);
        Shown memory shown = _shown(32);
        _revealWith(32, shown);
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyRevealed.selector, task, 32));
        _revealWith(32, shown);
    }

    function test_reveal_wrongOpening_reverts() public {
        _looked(9);
        Shown memory shown = _shown(32);
        shown.secret = _secret(1);
        vm.expectPartialRevert(Refusals.WrongAttestation.selector);
        _revealWith(32, shown);
        shown = _shown(32);
        shown.digest = keccak256("another");
        vm.expectPartialRevert(Refusals.WrongAttestation.selector);
        _revealWith(32, shown);
        shown = _shown(32);
        shown.root = keccak256("another");
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        _revealWith(32, shown);
        shown = _shown(32);
        shown.path[0] = keccak256("another");
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        _revealWith(32, shown);
        shown.path = new bytes32[](1);
        vm.expectPartialRevert(Rfc9162.ProofLength.selector);
        _revealWith(32, shown);
        // The opening of another segment of the seat, or of another seat.
        Shown memory next = _shown(33);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        _revealWith(32, next);
        next = _shown(35);
        vm.expectPartialRevert(Refusals.WrongAttestation.selector);
        _revealWith(32, next);
        shown = _shown(32);
        _revealWith(32, shown);
    }

    function test_reveal_noLook_reverts() public {
        _looked(1);
        Shown memory shown = _shown(32);
        uint256[6] memory none = [uint256(0), 33, 63, 64, 160, type(uint256).max];
        for (uint256 k; k < none.length; ++k) {
            vm.expectRevert(abi.encodeWithSelector(Refusals.NoLook.selector, task, none[k]));
            _revealWith(none[k], shown);
            vm.expectRevert(abi.encodeWithSelector(Refusals.NoLook.selector, task, none[k]));
            looks.takeUnrevealed(task, none[k]);
        }
        for (uint256 n = 1; n <= 2; ++n) {
            _redraw();
            _drawWith(bytes32(n));
        }
        _redraw();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoLook.selector, task, 32));
        looks.takeUnrevealed(task, 32);
    }

    function test_reveal_beforeTheSubmission_reverts() public {
        _looked(1);
        Shown memory shown = _shown(32);
        vm.prank(submitter);
        task = market.post(_terms(keccak256("program"), keccak256("constants"), checkpoints[0], SEGMENTS));
        _assertClosed(ITaskMarket.Status.Bidding, shown);
    }

    function test_reveal_convicted_reverts() public {
        _looked(1);
        Shown memory shown = _shown(32);
        _timeOut(_challengeBy(second, 1));
        _assertClosed(ITaskMarket.Status.Slashed, shown);
    }

    // ------------------------------------------------------------------ not in time

    /// @dev Half of the lock goes to the look's account, half burns, and there is no fee. Nobody is drawn to
    /// replace the seat, and the others continue.
    function test_takeUnrevealed_succeeds() public {
        _looked(1);
        (address account, address looker) = (_account(0), _account(32));
        uint64 until = _audit().pickedAt + MOVE_TIME;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        looks.takeUnrevealed(task, 32);
        vm.warp(until + 1);
        uint256 had = _free(looker);
        vm.expectEmit();
        emit ILooks.Unrevealed(task, 32, account, looker, LOCK / 2);
        vm.prank(anyone);
        looks.takeUnrevealed(task, 32);
        assertEq(_free(looker), had + LOCK / 2);
        assertEq(vault.burned(), LOCK / 2);
        assertEq(_stakeOf(account), SEAT_STAKE - LOCK);
        assertTrue(board.registrationOf(account).suspended);
        assertTrue(board.seatOf(task, 0).caught);
        assertTrue(board.seatOf(task, 0).attested);
        assertEq(_audit().attested, 2);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAttested.selector, task, 0));
        looks.takeUnrevealed(task, 32);
        _attest(32);
        _drawPicks(0);
        _settle();
        assertEq(_free(account), FUNDS - SEAT_STAKE);
        assertEq(_free(_account(1)), FUNDS - SEAT_STAKE + 2 * SEAT_FEE);
        assertEq(_free(submitter), FUNDS - 50 * UNIT - 3 * SEAT_FEE - 3 * DRAW_FEE);
    }

    /// @dev A caught account can resume and be drawn again; the old task never frees it.
    function test_release_caughtSeat_reverts() public {
        _looked(1);
        address account = _account(0);
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        looks.takeUnrevealed(task, 32);
        _attest(32);
        _drawPicks(0);
        _settle();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRelease.selector, task, 0));
        board.release(task, 0);
        vm.startPrank(account);
        board.resume();
        assertEq(_stakeOf(account), SEAT_STAKE);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotSuspended.selector, account));
        board.resume();
        vm.stopPrank();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToRelease.selector, task, 0));
        board.release(task, 0);
        board.release(task, 1);
        board.release(task, 32);
    }

    /// @dev Two looks at one seat, neither revealed: the lock is lost only once.
    function test_takeUnrevealed_twoLooks_reverts() public {
        _looked(3);
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        looks.takeUnrevealed(task, 33);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAttested.selector, task, 0));
        looks.takeUnrevealed(task, 32);
        assertEq(vault.burned(), LOCK / 2);
    }

    /// @dev A look of the second level takes a look's lock; that look keeps the fee for its attestation.
    function test_takeUnrevealed_secondLevel_succeeds() public {
        _looked(1);
        _reveal(32);
        _attest(32);
        _drawPicks(1);
        (address account, address looker) = (_account(32), _account(64));
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        uint256[2] memory had = [_free(account), _free(looker)];
        looks.takeUnrevealed(task, 64);
        assertEq(_free(account), had[0]);
        assertEq(_free(looker), had[1] + LOCK / 2);
        assertTrue(board.seatOf(task, 32).caught);
        assertFalse(board.seatOf(task, 0).caught);
        // The seat's digest stays revealed.
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyRevealed.selector, task, 32));
        looks.takeUnrevealed(task, 32);
        _attest(64);
        _drawPicks(0);
        _settle();
        _releaseAll();
    }

    /// @dev The look's account was silent and the look was redrawn: the current account is paid.
    function test_takeUnrevealed_afterARedraw_succeeds() public {
        _looked(1);
        address silent = _account(32);
        _redraw();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoLook.selector, task, 32));
        looks.takeUnrevealed(task, 32);
        _drawWith(0);
        address looker = _account(32);
        assertNotEq(looker, silent);
        looks.takeUnrevealed(task, 32);
        assertEq(_free(looker), FUNDS - SEAT_STAKE + LOCK / 2);
    }

    /// @dev A caught seat is owed nothing on a conviction except its game's cost.
    function test_payFee_caughtSeat_reverts() public {
        _looked(1);
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        looks.takeUnrevealed(task, 32);
        address account = _account(0);
        GameId id = _challengeBy(account, board.segmentsOf(task, 0)[0]);
        _timeOut(_challengeBy(second, _segmentOfNobody()));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingOwed.selector, task, 0));
        commitments.payFee(task, 0);
        uint256 had = _free(account);
        commitments.compensate(task, 0, id);
        assertEq(_free(account), had + GAME_COST);
    }

    function test_forfeit_byStranger_reverts() public {
        _looked(1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(looks), anyone));
        vm.prank(anyone);
        board.forfeit(task, 0, anyone);
        vm.startPrank(address(looks));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAttested.selector, task, 32));
        board.forfeit(task, 32, anyone);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAttested.selector, task, 33));
        board.forfeit(task, 33, anyone);
        vm.stopPrank();
    }

    // ------------------------------------------------------------------ inside

    /// @dev A segment that seat 0 does not have.
    function _segmentOfNobody() private view returns (uint256 segment) {
        for (segment = 1; segment <= SEGMENTS; ++segment) {
            bool taken;
            for (uint256 k; k < 2; ++k) {
                if (board.segmentsOf(task, 0)[k] == segment) taken = true;
            }
            if (!taken) return segment;
        }
    }

    /// @dev Nothing is revealed in a task of this status, and no lock is taken for it.
    function _assertClosed(ITaskMarket.Status status, Shown memory shown) private {
        bytes memory reason = abi.encodeWithSelector(Refusals.WrongStatus.selector, task, status);
        vm.expectRevert(reason);
        _revealWith(32, shown);
        vm.expectRevert(reason);
        looks.takeUnrevealed(task, 32);
    }
}
