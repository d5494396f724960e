// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Draws weight verifiers by their stake: splitting a stake into small accounts (attack 26) gains
/// nothing.
/// @notice 400 draws among 20 slots. The account of seat 0 holds a uniform slot, so a holder of s slots gets
/// it a binomially distributed number of times, n p = 20 s. A deviation of more than four standard deviations
/// occurs once in 16,000 runs; the chain ids are fixed, so this run is always the same.
contract WeightsTest is Deployment {
    uint256 private constant DRAWS = 400;

    function test_draw_fourTimesTheStake_succeeds() public {
        address[5] memory who;
        who[0] = _registered("four units", 2);
        for (uint256 k = 1; k < 5; ++k) {
            who[k] = _registered(string.concat("one unit ", vm.toString(k)), 0);
        }
        // The other twelve slots belong to the deployment's six verifiers.
        TaskId task = _submitted(1);
        uint256[5] memory drawn;
        for (uint256 i; i < DRAWS; ++i) {
            uint256 fork = vm.snapshotState();
            vm.chainId(i + 1);
            _draw(task);
            address account = board.seatsOf(task)[0].account;
            vm.revertToStateAndDelete(fork);
            for (uint256 k; k < 5; ++k) {
                if (account == who[k]) ++drawn[k];
            }
        }
        // n p (1 - p) is 400 x 0.2 x 0.8 = 64 and 400 x 0.05 x 0.95 = 19.
        assertApproxEqAbs(drawn[0], 80, 4 * 8, "four units");
        assertApproxEqAbs(drawn[1] + drawn[2] + drawn[3] + drawn[4], 80, 4 * 8, "in pieces");
        for (uint256 k = 1; k < 5; ++k) {
            assertApproxEqAbs(drawn[k], 20, 17, "one unit");
        }
    }
}
