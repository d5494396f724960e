// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Snapshot} from "../harness/Snapshot.sol";
import {Seated} from "./Seated.sol";

/// @title Every seat claims everything it can from the minimum stake that terms may have: each is paid in
/// full, and at least a quarter burns.
contract WholeStakeTest is Seated, Snapshot {
    uint128 private gameCost = GAME_COST;
    uint128 private fee = SEAT_FEE;
    uint128 private restitution = RESTITUTION;
    uint128 private reward = 10 * UNIT;

    function _terms(bytes32 program, bytes32 constantsRoot, bytes32 initialState, uint32 segments)
        internal
        view
        override
        returns (Terms memory terms)
    {
        terms = super._terms(program, constantsRoot, initialState, segments);
        (terms.gameCost, terms.auditFee, terms.restitution) = (gameCost, fee, restitution);
        (terms.reward, terms.retrainReward, terms.delayPenalty) = (reward, 0, 0);
        uint256 owed = uint256(reward) + restitution + SEATS * (uint256(gameCost) + fee);
        terms.stake = uint128((4 * owed + 2) / 3);
        terms.bond = terms.stake / 4;
        terms.seatLock = fee < UNIT ? 2 * UNIT : fee + UNIT;
    }

    /// @dev Seat 0 convicts. By then seat 1 has committed but not opened its commitment, and seat 2 has a
    /// game in progress.
    function testFuzz_claims_addUpToTheStake_succeeds(uint128 cost, uint128 fee_, uint128 back, uint128 most)
        public
    {
        gameCost = uint128(bound(cost, UNIT, 33 * UNIT));
        fee = uint128(bound(fee_, 0, 60 * UNIT));
        // A quarter of the stake is a third of all that it owes. That covers the minimum bond, which is twice
        // the sum of a game's cost and the cost of capital.
        restitution = uint128(bound(back, 3 * gameCost + UNIT, 100 * UNIT));
        reward = uint128(bound(most, 0, (uint256(restitution) + SEATS * (uint256(gameCost) + fee)) / 6));
        _begin();
        GameId id = _challengeBy(holders[0], own[0]);
        GameId moot = _challengeBy(holders[2], own[2]);
        _attest(2);
        uint256[SEATS] memory had = [_free(holders[0]), _free(holders[1]), _free(holders[2])];
        uint256 stake = _stakeLeft();
        uint256 bond = commitments.bondOf(task, NO_SEAT, anyone);
        vm.warp(game.gameOf(id).deadline);
        bytes32 salt = _commitFrom(1, own[1], holders[1]);
        _lapse(id);
        commitments.payFee(task, 2);
        commitments.compensate(task, 2, moot);
        commitments.compensate(task, 0, id);
        _openLate(1, own[1], holders[1], salt);
        game.closeMoot(moot);
        uint256 due = uint256(gameCost) + fee;
        assertEq(_free(holders[0]), had[0] + bond + reward + due);
        assertEq(_free(holders[1]), had[1] + due);
        assertEq(_free(holders[2]), had[2] + bond + due);
        uint256 rest = stake - reward - restitution - SEATS * due;
        assertEq(_stakeLeft(), rest);
        vm.warp(commitments.claimsUntil(task) + 1);
        market.burnRest(task);
        assertEq(vault.burned(), rest);
        assertGe(rest, (stake + 3) / 4);
    }

    /// forge-config: default.isolate = true
    function test_gas_claims_belowTargets_succeeds() public {
        _begin();
        GameId id = _challengeBy(challenger, others);
        GameId moot = _challengeBy(holders[1], own[1]);
        _attest(1);
        _attest(2);
        vm.warp(game.gameOf(id).deadline);
        bytes32 salt = _commitFrom(0, own[0], holders[0]);
        _matches("commit from a seat", 160_000);
        bytes32 stale = _commitFrom(2, own[2], holders[2]);
        _lapse(id);
        _matches("convict by time", 200_000);
        _openLate(0, own[0], holders[0], salt);
        _matches("open late", 200_000);
        commitments.compensate(task, 1, moot);
        _matches("compensate", 200_000);
        commitments.payFee(task, 2);
        _matches("pay fee", 150_000);
        game.closeMoot(moot);
        _matches("close moot", 150_000);
        vm.warp(vm.getBlockTimestamp() + OPENING_PERIOD + 1);
        bytes32 commitment = _commitment(task, own[2], holders[2], stale);
        commitments.forfeit(holders[2], commitment);
        _matches("forfeit", 100_000);
        vm.warp(commitments.claimsUntil(task) + 1);
        market.burnRest(task);
        _matches("burn rest", 100_000);
    }
}
