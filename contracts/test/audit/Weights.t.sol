// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Draws weigh verifiers by their stake.
/// @notice 400 draws among 10 slots. The first verifier of a draw holds a uniform slot, so a holder of s slots is it in a binomial
/// number of them, n p = 40 s. Four standard deviations around that are missed once in 16,000 runs; the seeds are fixed,
/// so this run is always the same.
contract WeightsTest is Deployment {
    uint256 private constant DRAWS = 400;
    uint256 private constant SLOTS = 10;

    function test_draw_threeTimesTheStake_succeeds() public {
        address[2] memory who = [makeAddr("three units"), makeAddr("one unit")];
        for (uint256 k; k < 2; ++k) {
            _fund(who[k]);
            vm.prank(who[k]);
            board.register(k == 0 ? 3 : 1);
        }
        // The other six slots belong to the deployment's three verifiers.
        assertEq(board.liveSlots(), SLOTS);
        TaskId task = _submitted(1);
        uint256[2] memory drawn;
        for (uint256 k; k < DRAWS; ++k) {
            uint256 fork = vm.snapshotState();
            _draw(task, keccak256(abi.encode("draw", k)));
            address first = board.dutiesOf(task)[0].verifier;
            vm.revertToStateAndDelete(fork);
            if (first == who[0]) ++drawn[0];
            if (first == who[1]) ++drawn[1];
        }
        // n p (1 - p) is 400 * 0.3 * 0.7 = 84 and 400 * 0.1 * 0.9 = 36.
        assertApproxEqAbs(drawn[0], 120, 37, "three units");
        assertApproxEqAbs(drawn[1], 40, 4 * 6, "one unit");
    }
}
