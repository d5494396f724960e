// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "./Deployment.sol";

/// @title A task that its submitter cancels.
contract CancellingTest is Deployment {
    function test_cancel_withoutBid_succeeds() public {
        TaskId task = _post();
        uint256 escrow = market.taskOf(task).escrow;
        vm.expectEmit();
        emit ITaskMarket.Refunded(task, _escrowOf(_terms()), 0);
        _cancel(task);
        assertEq(uint8(market.statusOf(task)), uint8(ITaskMarket.Status.Refunded));
        assertEq(vault.free(submitter), FUNDS);
        assertEq(_remaining(escrow), 0);
        assertEq(vault.burned(), 0);
    }

    /// @dev The whole escrow is returned for any terms, and can be locked again at once.
    function testFuzz_cancel_anyEscrow_succeeds(uint128 budget, uint128 fee, bool looked) public {
        Terms memory terms = _terms();
        terms.budget = uint128(bound(budget, terms.restitution, BUDGET));
        terms.auditFee = uint128(bound(fee, 0, 3 * UNIT));
        if (looked) terms.lookChance = 1_500;
        TaskId task = _post(terms);
        assertLt(vault.free(submitter), FUNDS);
        _cancel(task);
        assertEq(vault.free(submitter), FUNDS);
        assertEq(_post(terms), TaskId.wrap(2));
    }

    /// @dev A bid that is mined first stands: the submitter cannot undo it.
    function test_cancel_withBid_reverts() public {
        TaskId task = _post();
        vm.prank(solver);
        market.bid(task, BUDGET);
        vm.expectRevert(abi.encodeWithSelector(Refusals.HasBid.selector, task, solver));
        _cancel(task);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.HasBid.selector, task, solver));
        _cancel(task);
        market.assign(task);
        assertEq(market.solverOf(task), solver);
    }

    /// @dev A bid that is mined after the cancellation locks nothing.
    function test_bid_cancelled_reverts() public {
        TaskId task = _post();
        _cancel(task);
        uint256 free = vault.free(solver);
        _expectRefunded(task);
        vm.prank(solver);
        market.bid(task, BUDGET);
        assertEq(vault.free(solver), free);
        assertEq(market.taskOf(task).bidder, address(0));
    }

    function test_cancel_byStranger_reverts() public {
        TaskId task = _post();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, submitter, solver));
        vm.prank(solver);
        market.cancel(task);
    }

    function test_cancel_twice_reverts() public {
        TaskId task = _post();
        _cancel(task);
        _expectRefunded(task);
        _cancel(task);
        assertEq(vault.free(submitter), FUNDS);
    }

    /// @dev There is no second refund when the bidding period is over.
    function test_assign_cancelled_reverts() public {
        TaskId task = _post();
        _cancel(task);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        _expectRefunded(task);
        market.assign(task);
    }

    /// @dev Cancelling is possible until somebody calls `assign`.
    function test_cancel_afterBidding_succeeds() public {
        TaskId task = _post();
        vm.warp(market.taskOf(task).bidsUntil + 1);
        _cancel(task);
        assertEq(vault.free(submitter), FUNDS);
    }

    function test_cancel_training_reverts() public {
        TaskId task = _assigned(1);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Training)
        );
        _cancel(task);
    }

    function test_cancel_unknownTask_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.UnknownTask.selector, TaskId.wrap(1)));
        _cancel(TaskId.wrap(1));
    }

    /// @dev A pause does not block an escrow.
    function test_cancel_whilePaused_succeeds() public {
        TaskId task = _post();
        vm.prank(pauser);
        market.pause();
        _cancel(task);
        assertEq(vault.free(submitter), FUNDS);
    }

    // ------------------------------------------------------------------ inside

    function _cancel(TaskId task) private {
        vm.prank(submitter);
        market.cancel(task);
    }

    function _expectRefunded(TaskId task) private {
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Refunded)
        );
    }
}
