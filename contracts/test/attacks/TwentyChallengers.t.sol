// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Play} from "../dispute/Play.sol";

/// @title Twenty challengers at once against one honest solver (attack 19): it answers once and is paid
/// twenty times. Four of them wait, and their bonds double one after the other.
contract TwentyChallengersTest is Play {
    uint256 private constant COUNT = 20;
    uint256 private constant AT_ONCE = 16;

    function setUp() public override {
        super.setUp();
        _start();
    }

    function test_challenge_byTwenty_honestSolverIsPaid_succeeds() public {
        uint256 burned = vault.burned();
        uint256 solverHad = _free(solver);
        address[] memory accusers = new address[](COUNT);
        GameId[] memory ids = new GameId[](COUNT);
        uint256 bonds;
        for (uint256 k; k < COUNT; ++k) {
            uint256 bond = k < AT_ONCE ? BOND : uint256(BOND) << (k + 1 - AT_ONCE);
            bonds += bond;
            accusers[k] = _accuser(string.concat("accuser ", vm.toString(k)), bond);
            ids[k] = _challengeBy(accusers[k], SEGMENT);
        }
        // One claim serves all of them, and nobody waits for it longer than the first challenger.
        assertEq(game.gameOf(ids[AT_ONCE - 1]).deadline, game.gameOf(ids[0]).deadline);
        assertEq(game.gameOf(ids[AT_ONCE]).deadline, type(uint64).max);
        _expandSteps();
        for (uint256 k; k < COUNT; ++k) {
            if (k % AT_ONCE == 0) vm.warp(vm.getBlockTimestamp() + TIME + 1);
            vm.prank(anyone);
            game.timeOut(ids[k]);
            _assertVerdict(ids[k], IDisputeGame.Verdict.ChallengerSilent);
            assertEq(_free(accusers[k]), 0);
        }
        assertEq(_free(solver), solverHad + bonds / 2);
        assertEq(vault.burned(), burned + bonds / 2);
        ITaskMarket.Task memory t = market.taskOf(task);
        assertEq(uint256(t.status), uint256(ITaskMarket.Status.Submitted));
        assertEq(t.openGames, 0);
        (,, uint256 stake) = vault.lockOf(t.stake);
        assertEq(stake, STAKE);
    }
}
