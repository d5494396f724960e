// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Parameters} from "../../src/types/Parameters.sol";
import {Snapshot} from "../harness/Snapshot.sol";
import {Deployment} from "./Deployment.sol";

/// @title What each transaction of a task's honest way costs: V = 3 verifiers, q = 2 segments and segment K each, K = 5.
/// @notice Isolated: every call is a transaction of its own, with cold storage, calldata and the 21,000 included.
contract GasTest is Deployment, Snapshot {
    /// @dev The number of the draw block is in the seed: with this one seven duties are drawn.
    function _parameters() internal pure override returns (Parameters memory parameters) {
        parameters = super._parameters();
        parameters.drawDelay = 4;
    }

    /// forge-config: default.isolate = true
    function test_gas_honestWay_belowTargets_succeeds() public {
        TaskId task = _post();
        _matches("post", 600_000);
        vm.prank(rival);
        market.bid(task, BUDGET);
        _matches("bid", 200_000);
        // The dearest: it releases the other's stake, and moves the end.
        vm.warp(market.taskOf(task).bidsUntil);
        vm.prank(solver);
        market.bid(task, BUDGET / 2);
        _matches("bid again", 200_000);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
        _matches("assign", 100_000);
        _progress(task, 3);
        _matches("first progress", 120_000);
        _progress(task, 4);
        _matches("progress", 100_000);
        _submit(task);
        _matches("submit", 150_000);
        _draw(task, HEADER_MIX_HASH);
        _matches("draw", 700_000);
        uint256 count = board.dutiesOf(task).length;
        for (uint256 i; i < count; ++i) {
            _attest(task, i);
            _matches("attest", 80_000);
        }
        vm.warp(market.taskOf(task).challengeUntil + 1);
        market.settle(task);
        // dispute.md section 11.
        _matches("settle", 250_000);
    }
}
