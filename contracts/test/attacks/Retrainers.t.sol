// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId} from "../../src/types/Ids.sol";
import {Seated} from "../dispute/Seated.sol";

/// @title A cheating solver's accomplice opens a game before the party that retrains a stalled task
/// (docs/security.md section 4).
/// @notice Not prevented. The test states who is paid, so that a change is noticed.
contract RetrainersTest is Seated {
    function setUp() public override {
        super.setUp();
        _begin();
        vm.warp(vm.getBlockTimestamp() + STALL_PERIOD + 1);
        market.stall(task);
    }

    /// @dev The accomplice's game has priority on the false segment while it is in progress: it gets the
    /// retrainer's reward, and the retrainer only gets its bond back.
    function test_timeOut_accompliceWasFirst_takesTheRetrainersReward_succeeds() public {
        GameId held = _challengeBy(second, others);
        (uint256 had, uint256 secondHad) = (_free(challenger), _free(second));
        _convictOn(others, challenger);
        assertEq(_free(challenger), had);
        assertEq(_free(second), secondHad + RETRAIN_REWARD);
        game.closeMoot(held);
        assertEq(_free(second), secondHad + RETRAIN_REWARD + BOND);
    }
}
