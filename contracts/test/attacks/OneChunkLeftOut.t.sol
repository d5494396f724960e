// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Digesting} from "../looks/Digesting.sol";

/// @title A seat replays everything, but leaves one chunk out of its digest so that a look accuses it
/// (docs/security.md section 4).
/// @notice Not prevented. The test states the price, so that a change is noticed.
contract OneChunkLeftOutTest is Digesting {
    /// @dev The roots differ, so the look accuses. It names a chunk that the seat does have, so it pays the
    /// solver for the step tree and the seat for its answer.
    function test_answer_chunkElsewhereLeftOut_theLookPays_succeeds() public {
        (lies, liar, lie) = (true, 0, Spot(1, 0, 0));
        _accused(1, Spot(2, 0, 1));
        _answer(32, Spot(2, 0, 1));
        assertFalse(board.seatOf(task, 0).caught);
        _settle();
        _releaseAll();
        assertEq(_free(_account(0)), FUNDS - SEAT_STAKE + 2 * SEAT_FEE + GAME_COST);
        assertEq(_free(_account(32)), FUNDS - SEAT_STAKE + SEAT_FEE - 2 * uint256(GAME_COST));
    }
}
