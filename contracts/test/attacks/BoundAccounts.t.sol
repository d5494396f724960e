// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Offer} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title A solver that has honest accounts drawn for a task of its own that pays next to nothing, just before it submits a false result
/// (docs/security.md section 4).
/// @notice Not prevented. The test states the price, so that a change of it is seen.
contract BoundAccountsTest is Deployment {
    /// @dev Least fee of a seat of one operation: honest offers ask 50 tokens for 10^9 of them.
    uint128 private constant LEAST = 50 * UNIT / 1e9;

    address[3] private own;

    function setUp() public override {
        super.setUp();
        for (uint256 i; i < 3; ++i) {
            own[i] = makeAddr(string.concat("own ", vm.toString(i)));
            _fund(own[i]);
            vm.prank(own[i]);
            // Too small for the other task's states, so that this one does not bind them.
            board.register(1, Offer(type(uint64).max, _terms().stateBytes, type(uint128).max, 0));
        }
    }

    /// @dev Six honest accounts and three of the solver's. All honest ones sit in its own task, all of its own in the victim's.
    function test_draw_afterATaskThatPaysNothing_findsTheSolversAccountsAlone_succeeds() public {
        Terms memory bait = _terms();
        (bait.stepOperations, bait.segmentSteps, bait.thinning) = (1, 1, 1);
        (bait.budget, bait.restitution, bait.auditFee) = (1, 0, LEAST);
        (bait.verifiers, bait.segmentsPerVerifier) = (uint16(VERIFIERS), 1);
        bait.stateBytes = _terms().stateBytes + 1;
        TaskId first = _assigned(bait, 0);
        TaskId victim = _assigned(_terms(), 80 * UNIT);
        _submit(first);
        _submit(victim);
        _draw(first);
        _draw(victim);
        for (uint256 i; i < VERIFIERS; ++i) {
            assertEq(board.registrationOf(verifiers[i]).freeSince, type(uint40).max);
        }
        for (uint256 i; i < 3; ++i) {
            address sits = board.seatOf(victim, i).account;
            assertTrue(sits == own[0] || sits == own[1] || sits == own[2], "an honest account");
        }
        // Nobody has looked; the false result is paid.
        _attestAll(victim);
        _endWindow(victim);
        market.settle(victim);
        assertEq(_remaining(market.taskOf(victim).stake), 0);
        // What the other task costs in all: one draw, and six seats.
        uint256 escrow = _escrowOf(bait);
        assertEq(escrow - _remaining(market.taskOf(first).escrow), DRAW_FEE);
        assertEq(VERIFIERS * uint256(LEAST), 3e11);
    }
}
