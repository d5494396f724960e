// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Fees} from "../src/libraries/Fees.sol";
import {Pool} from "../src/libraries/Pool.sol";

/// @title Halmos proofs about fees and slots, for all amounts that terms can have.
/// @notice The SMT solver cannot handle products of two unknowns, so one factor is a constant, at the
/// extremes of what terms allow. A property returns early for inputs that cannot occur: amounts of 2^94 or
/// more, and stake units of 0 or of 2^79 or more.
contract AmountsProofs {
    uint256 private constant MOST = 1 << 94;

    /// @dev The escrow covers everything it may have to pay: the price, each seat, each look, each draw.
    function check_escrow_coversEveryClaim(uint128 budget, uint128 price, uint128 fee, uint128 drawFee)
        public
        pure
    {
        if (budget >= MOST || price > budget || fee >= MOST || drawFee >= MOST) return;
        _escrow(budget, price, fee, drawFee, 1, 1);
        _escrow(budget, price, fee, drawFee, 1, 32);
        _escrow(budget, price, fee, drawFee, 32, 1);
        uint256 escrow = Fees.escrow(budget, 32, 64, fee, 0, drawFee);
        assert(escrow >= price + 32 * Fees.ofSeat(fee, 64) + 8 * uint256(drawFee));
    }

    /// @dev The slots of the chosen levels are counted without overflow, at the four highest levels.
    function check_choose_countsEverySlot(uint16 a, uint16 b, uint16 c, uint16 d, uint128 unit, uint128 least)
        public
        pure
    {
        if (unit == 0 || unit >= 1 << 79) return;
        uint16[16] memory lengths;
        (lengths[12], lengths[13], lengths[14], lengths[15]) = (a, b, c, d);
        Pool.Choice memory choice = Pool.choose(0, lengths, unit, least);
        uint256 slots;
        for (uint256 level = 12; level < 16; ++level) {
            if (uint256(unit) << level >= least) slots += uint256(lengths[level]) << level;
        }
        assert(choice.slots == slots);
    }

    function _escrow(
        uint128 budget,
        uint128 price,
        uint128 fee,
        uint128 drawFee,
        uint256 verifiers,
        uint256 each
    ) private pure {
        uint256 escrow = Fees.escrow(budget, verifiers, each, fee, 1, drawFee);
        uint256 looks = verifiers * each * uint256(fee);
        assert(escrow >= price + verifiers * Fees.ofSeat(fee, each) + looks + 12 * uint256(drawFee));
    }
}
