// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "./Deployment.sol";

/// @title The amounts of a task's terms, each at its bounds and one unit beyond: dispute.md section 2,
/// "post".
contract AmountsTest is Deployment {
    /// @dev Most that one lock of the vault holds.
    uint128 private constant MAX_LOCK = (1 << 94) - 1;
    /// @dev The parameters' rate, 10 % a year.
    uint256 private constant RATE = 1000;
    /// @dev Longest game with the terms' clock and allowance, both sides together.
    uint256 private constant LONGEST = 2 * 90;

    function testFuzz_post_rewards_atTheBound_succeeds(uint128 stake) public {
        Terms memory terms = _withStake(stake);
        uint128 most = terms.stake / 8;
        terms.reward = most + 1;
        _refused("reward", most + 1, 0, most, terms);
        (terms.reward, terms.retrainReward) = (most, most + 1);
        _refused("retrainReward", most + 1, 0, most, terms);
        (terms.reward, terms.retrainReward) = (0, most);
        _post(terms);
        (terms.reward, terms.retrainReward) = (most, 0);
        _post(terms);
    }

    function test_post_gameCost_atTheBound_succeeds() public {
        Terms memory terms = _terms();
        terms.gameCost = UNIT - 1;
        _refused("gameCost", UNIT - 1, UNIT, MAX_LOCK, terms);
        terms.gameCost = MAX_LOCK + 1;
        _refused("gameCost", MAX_LOCK + 1, UNIT, MAX_LOCK, terms);
        terms.gameCost = UNIT;
        _post(terms);
        // No stake covers it.
        terms.gameCost = terms.stake = MAX_LOCK;
        uint256 owed = RETRAIN_REWARD + 3 * (uint256(MAX_LOCK) + SEAT_FEE) + terms.restitution;
        _refused("stake", MAX_LOCK, (4 * owed + 2) / 3, MAX_LOCK, terms);
    }

    function testFuzz_post_bond_atTheBound_succeeds(uint128 stake, uint128 gameCost) public {
        Terms memory terms = _withStake(stake);
        terms.gameCost = uint128(bound(gameCost, UNIT, terms.stake / 16));
        uint256 year = 10_000 * uint256(365 days);
        uint256 capital = (uint256(terms.stake) * RATE * LONGEST + year - 1) / year;
        uint128 least = uint128(2 * (terms.gameCost + capital));
        uint128 most = terms.stake / 4;
        terms.bond = least - 1;
        _refused("bond", least - 1, least, most, terms);
        terms.bond = most + 1;
        _refused("bond", most + 1, least, most, terms);
        terms.bond = least;
        _post(terms);
        terms.bond = most;
        _post(terms);
    }

    /// @dev The stake covers the greater reward, every seat's cost and fee, and the restitution; a quarter of
    /// it burns.
    function testFuzz_post_stake_atTheBound_succeeds(
        uint128 reward,
        uint128 retrainReward,
        uint128 gameCost,
        uint128 restitution,
        uint16 seats
    ) public {
        Terms memory terms = _terms();
        terms.verifiers = uint16(bound(seats, 1, 32));
        terms.gameCost = uint128(bound(gameCost, UNIT, 40 * UNIT));
        terms.auditFee = 4 * terms.gameCost / 5;
        terms.seatLock = 100 * UNIT;
        terms.restitution = uint128(bound(restitution, terms.gameCost * 4, 160 * UNIT));
        terms.budget = 160 * UNIT;
        terms.delayPenalty = 0;
        uint256 due = terms.verifiers * (terms.gameCost + 2 * uint256(terms.auditFee)) + terms.restitution;
        terms.reward = uint128(bound(reward, 0, due / 6));
        terms.retrainReward = uint128(bound(retrainReward, 0, due / 6));
        due += terms.reward > terms.retrainReward ? terms.reward : terms.retrainReward;
        uint128 least = uint128(due + due / 3 + (due % 3 == 0 ? 0 : 1));
        assertGe(least - (least + 3) / 4, due);
        terms.stake = least - 1;
        _refused("stake", least - 1, least, MAX_LOCK, terms);
        (terms.stake, terms.bond) = (least, least / 4);
        // A stake smaller by more than one unit would not have been enough.
        assertLt(least - 2 - (uint256(least) - 2 + 3) / 4, due);
        _post(terms);
    }

    /// @dev A lock of the vault cannot hold more.
    function test_post_stakeAboveALock_reverts() public {
        Terms memory terms = _terms();
        uint256 owed = RETRAIN_REWARD + 3 * (GAME_COST + SEAT_FEE) + terms.restitution;
        terms.bond = MAX_LOCK / 4;
        terms.stake = MAX_LOCK + 1;
        _refused("stake", uint256(MAX_LOCK) + 1, (4 * owed + 2) / 3, MAX_LOCK, terms);
        terms.stake = MAX_LOCK;
        _post(terms);
    }

    /// @dev Sums of the greatest numbers are refused without overflow.
    function test_post_greatestNumbers_reverts() public {
        Terms memory terms = _terms();
        uint128 most = type(uint128).max;
        terms.verifiers = 32;
        (terms.budget, terms.restitution, terms.stake) = (most, most, most);
        (terms.reward, terms.retrainReward, terms.bond) = (most, most, most);
        terms.gameCost = MAX_LOCK;
        uint256 owed = 2 * uint256(most) + 32 * (uint256(MAX_LOCK) + SEAT_FEE);
        terms.seatLock = 40 * UNIT;
        _refused("stake", most, (4 * owed + 2) / 3, MAX_LOCK, terms);
    }

    // ------------------------------------------------------------------ inside

    /// @dev Terms in which nothing else bounds rewards and bond.
    function _withStake(uint128 stake) private view returns (Terms memory terms) {
        terms = _terms();
        terms.stake = uint128(bound(stake, 1000 * UNIT, MAX_LOCK));
        terms.bond = terms.stake / 4;
        (terms.reward, terms.retrainReward) = (0, 0);
    }

    function _refused(string memory field, uint256 value, uint256 least, uint256 most, Terms memory terms)
        private
    {
        _expectBounds(field, value, least, most);
        _post(terms);
    }
}
