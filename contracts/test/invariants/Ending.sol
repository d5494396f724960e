// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit} from "../../src/types/Seats.sol";
import {MarketHandler} from "./MarketHandler.sol";

/// @title Brings every task to its end by calls that anyone may make, from whatever state the random calls
/// left it in.
/// @notice Meanwhile only honest parties act; all others are silent.
contract Ending is MarketHandler {
    /// @dev More calls than any task needs: each of at most 8 draws of seats and 12 of looks takes three,
    /// each jury five.
    uint256 private constant MOST_CALLS = 200;

    /// @notice Afterwards every task is over and binds nothing.
    function endAll() external {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            for (uint256 calls; !_isOver(task); ++calls) {
                require(calls < MOST_CALLS, "a task does not end");
                _step(task);
            }
        }
        while (board.firstDraw().task != 0) {
            draw();
        }
        // `_find` goes through tasks starting from the seed's.
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            while (looks.openAccusations(task) != 0) closeMoot(k - 1);
            if (juries.claimOf(task).account != address(0)) dropClaim(k - 1);
            if (market.statusOf(task) == ITaskMarket.Status.Slashed && !rests[task]) {
                burnRestOne(k - 1);
            }
        }
        release();
    }

    function _isOver(TaskId task) private view returns (bool) {
        ITaskMarket.Status status = market.statusOf(task);
        return status > ITaskMarket.Status.Submitted && status != ITaskMarket.Status.Unpaid;
    }

    /// @dev One call that brings the task closer to its end.
    function _step(TaskId task) private {
        uint256 seed = TaskId.unwrap(task) - 1;
        ITaskMarket.Task memory entry = market.taskOf(task);
        if (entry.openGames != 0) return closeGame(seed);
        if (entry.status == ITaskMarket.Status.Bidding) return assign(seed);
        if (entry.status == ITaskMarket.Status.Training) return expireOne(seed);
        if (entry.status == ITaskMarket.Status.Unpaid) return closeStalled(seed);
        if (looks.openAccusations(task) != 0) return takeUnanswered(seed);
        Audit memory audit = board.auditOf(task);
        if (audit.pending) draw();
        else if (audit.claimant != 0) close(seed);
        else finish(seed);
    }
}
