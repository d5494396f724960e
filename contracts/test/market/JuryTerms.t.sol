// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "./Deployment.sol";

/// @title What terms with juries must cover: dispute.md section 2, "post".
contract JuryTermsTest is Deployment {
    /// @dev Most that one lock of the vault holds.
    uint256 private constant MAX_LOCK = (1 << 94) - 1;

    function test_post_jurors_atTheBound_succeeds() public {
        Terms memory terms = _terms();
        terms.jurors = 2;
        _refused("jurors", 2, 3, 32, terms);
        terms.jurors = 33;
        _refused("jurors", 33, 3, 32, terms);
        terms.jurors = 3;
        _post(terms);
        for (uint256 k; k < 29; ++k) {
            _registered(string.concat("juror ", vm.toString(k)), 1);
        }
        terms.jurors = 32;
        _post(terms);
    }

    /// @dev With fewer accounts than seats and jurors, no jury could find that data are available.
    function test_post_fewRegistered_reverts() public {
        Terms memory terms = _terms();
        terms.jurors = 4;
        _refused("registered", 6, 7, type(uint32).max, terms);
        _registered("seventh", 0);
        _post(terms);
    }

    /// @dev A sixteenth of the stake covers what a jury returns to the claimant.
    function testFuzz_post_stake_atTheBound_succeeds(uint128 fee) public {
        Terms memory terms = _terms();
        terms.auditFee = uint128(bound(fee, 10 * UNIT, 20 * UNIT));
        (terms.verifiers, terms.segmentsPerVerifier, terms.jurors) = (1, 1, 3);
        (terms.delayPenalty, terms.reward, terms.retrainReward) = (0, 0, 0);
        terms.bond = 12 * UNIT;
        uint256 least = 16 * (uint256(terms.auditFee) + DRAW_FEE);
        terms.stake = uint128(least - 1);
        _refused("stake", least - 1, least, MAX_LOCK, terms);
        terms.stake = uint128(least);
        _post(terms);
        terms.stake = uint128(least - 1);
        terms.jurors = 0;
        _post(terms);
    }

    function _refused(string memory field, uint256 value, uint256 least, uint256 most, Terms memory terms)
        private
    {
        _expectBounds(field, value, least, most);
        _post(terms);
    }
}
