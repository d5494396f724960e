// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Deployment} from "./Deployment.sol";

/// @title What each transaction of a task's honest way costs: V = 3 verifiers, q = 2 segments and segment K each, K = 5.
/// @notice Isolated: every call is a transaction of its own, with cold storage, calldata and the 21,000 included.
contract GasTest is Deployment {
    /// forge-config: default.isolate = true
    function test_gas_honestWay_belowTargets_succeeds() public {
        uint256 task = _post();
        _below("post", 600_000);
        vm.prank(solver);
        market.bid(task, BUDGET);
        _below("bid", 200_000);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
        _below("assign", 100_000);
        _progress(task, 3);
        _below("first progress", 120_000);
        _progress(task, 4);
        _below("progress", 100_000);
        _submit(task);
        _below("submit", 150_000);
        _draw(task, HEADER_MIX_HASH);
        _below("draw", 700_000);
        uint256 count = board.dutiesOf(task).length;
        for (uint256 i; i < count; ++i) {
            _attest(task, i);
            _below("attest", 80_000);
        }
        vm.warp(market.taskOf(task).challengeUntil + 1);
        market.settle(task);
        // dispute.md section 11.
        _below("settle", 250_000);
    }

    /// @dev The last transaction's gas.
    function _below(string memory step, uint256 limit) private {
        uint256 used = vm.lastCallGas().gasTotalUsed;
        emit log_named_uint(step, used);
        assertLt(used, limit, step);
    }
}
