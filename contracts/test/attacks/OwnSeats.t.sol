// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Offer} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title A submitter whose terms only its own accounts accept: what its solver's work costs it
/// (docs/security.md section 4).
/// @notice Not prevented. The test states the price, so that a change is noticed.
contract OwnSeatsTest is Deployment {
    address[3] private own;

    function setUp() public override {
        super.setUp();
        for (uint256 i; i < 3; ++i) {
            own[i] = makeAddr(string.concat("own ", vm.toString(i)));
            _fund(own[i]);
            vm.prank(own[i]);
            board.register(
                1, Offer(type(uint64).max, type(uint64).max, type(uint128).max, 0, 0, type(uint32).max)
            );
        }
    }

    /// @dev Seats that pay nothing are taken by accounts that require no fee. They stay silent, which costs
    /// one draw fee each, plus the first draw.
    function test_closeStalled_seatsOfTheSubmitter_costItDrawFees_succeeds() public {
        Terms memory terms = _terms();
        terms.auditFee = 0;
        TaskId task = _drawn(terms, 80 * UNIT);
        for (uint256 i; i < 3; ++i) {
            address sits = board.seatOf(task, i).account;
            assertTrue(sits == own[0] || sits == own[1] || sits == own[2], "an account of another");
        }
        uint64 since = uint64(vm.getBlockTimestamp());
        _silence(task);
        board.redraw(task);
        _draw(task);
        assertEq(board.seatOf(task, 0).account, address(0));
        _reach(since + STALL_PERIOD + 1);
        market.stall(task);
        _endWindow(task);
        market.closeStalled(task);
        assertEq(uint8(market.taskOf(task).status), uint8(ITaskMarket.Status.Void));
        assertEq(vault.free(solver), FUNDS);
        assertEq(vault.free(submitter), FUNDS - DRAW_FEE);
        for (uint256 i; i < 3; ++i) {
            assertEq(_remaining(board.registrationOf(own[i]).lock), SEAT_STAKE - DRAW_FEE);
        }
    }
}
