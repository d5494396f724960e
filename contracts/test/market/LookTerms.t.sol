// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "./Deployment.sol";

/// @title What terms with looks must cover: dispute.md section 2, "post".
contract LookTermsTest is Deployment {
    /// @dev Most that one lock of the vault holds.
    uint256 private constant MAX_LOCK = (1 << 94) - 1;

    function test_post_moveTime_atTheBound_succeeds() public {
        Terms memory terms = _terms();
        terms.moveTime = 9;
        _refused("moveTime", 9, 10, terms.attestPeriod, terms);
        terms.moveTime = terms.attestPeriod + 1;
        _refused("moveTime", terms.attestPeriod + 1, 10, terms.attestPeriod, terms);
        terms.moveTime = terms.attestPeriod;
        _post(terms);
        terms.moveTime = 10;
        _post(terms);
    }

    function test_post_lookChance_atTheBound_succeeds() public {
        Terms memory terms = _terms();
        terms.lookChance = 10_001;
        _refused("lookChance", 10_001, 1, 10_000, terms);
        terms.lookChance = 10_000;
        _post(terms);
        terms.lookChance = 1;
        _post(terms);
    }

    /// @dev Each segment of each seat takes one bit; without looks there may be more.
    function test_post_segmentsOfSeats_atTheBound_succeeds() public {
        Terms memory terms = _terms();
        (terms.verifiers, terms.segmentsPerVerifier) = (11, 3);
        _post(terms);
        terms.lookChance = 1;
        _refused("verifiers x segmentsPerVerifier", 33, 1, 32, terms);
        (terms.verifiers, terms.segmentsPerVerifier) = (16, 2);
        _post(terms);
        (terms.verifiers, terms.segmentsPerVerifier) = (32, 5);
        terms.stake = 10_000 * UNIT;
        _refused("verifiers x segmentsPerVerifier", 160, 1, 32, terms);
    }

    /// @dev Half of a lock pays a look for the game that obtains the step tree and for an accusation.
    function testFuzz_post_seatLock_atTheBound_succeeds(uint128 gameCost, uint128 fee) public {
        Terms memory terms = _terms();
        terms.lookChance = 5_000;
        terms.gameCost = uint128(bound(gameCost, UNIT, 9 * UNIT));
        terms.auditFee = uint128(bound(fee, 0, 25 * UNIT));
        uint128 least = 4 * terms.gameCost;
        if (least < 2 * terms.auditFee + DRAW_FEE) least = 2 * terms.auditFee + DRAW_FEE;
        uint256 most = STAKE_UNIT << 15;
        terms.seatLock = least - 1;
        _refused("seatLock", least - 1, least, most, terms);
        terms.seatLock = least;
        _post(terms);
    }

    /// @dev The stake also covers a game's cost and a fee for each look, and a quarter of it burns.
    function testFuzz_post_stake_atTheBound_succeeds(uint128 gameCost, uint128 fee, uint16 seats) public {
        Terms memory terms = _terms();
        terms.lookChance = 1;
        terms.verifiers = uint16(bound(seats, 1, 16));
        terms.gameCost = uint128(bound(gameCost, UNIT, 20 * UNIT));
        terms.auditFee = uint128(bound(fee, 0, 20 * UNIT));
        (terms.seatLock, terms.delayPenalty) = (100 * UNIT, 0);
        uint256 each = uint256(terms.gameCost) + terms.auditFee;
        // A seat has two fees.
        uint256 due = terms.verifiers * (3 * each + terms.auditFee) + terms.restitution;
        terms.reward = terms.retrainReward = uint128(due / 6);
        due += terms.reward;
        uint128 least = uint128((4 * due + 2) / 3);
        terms.bond = least / 4;
        terms.stake = least - 1;
        _refused("stake", least - 1, least, MAX_LOCK, terms);
        terms.stake = least;
        _post(terms);
    }

    /// @dev The escrow holds the same amount of fees again and four more draws; without a bid all of it is
    /// returned.
    function test_post_escrow_succeeds() public {
        Terms memory terms = _terms();
        terms.lookChance = 1;
        TaskId task = _post(terms);
        uint256 due = BUDGET + 2 * 3 * SEAT_FEE + 12 * uint256(DRAW_FEE);
        assertEq(_remaining(market.taskOf(task).escrow), due);
        assertEq(_escrowOf(terms), due);
        assertEq(vault.free(submitter), FUNDS - due);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
        assertEq(vault.free(submitter), FUNDS);
    }

    function _refused(string memory field, uint256 value, uint256 least, uint256 most, Terms memory terms)
        private
    {
        _expectBounds(field, value, least, most);
        _post(terms);
    }
}
