// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Bids} from "../src/libraries/Bids.sol";
import {Fees} from "../src/libraries/Fees.sol";
import {Pool} from "../src/libraries/Pool.sol";

/// @title What Halmos proves of fees, bids, shares and slots, for all amounts that terms can have.
/// @notice A property returns where its inputs cannot be met: amounts of terms are below 2^94, seats at most 32, segments at most 64.
contract AmountsProofs {
    uint256 private constant MOST = 1 << 94;

    /// @dev The escrow is the sum of what it may have to pay: the price, each seat, each look, each draw.
    function check_escrow_coversEveryClaim(
        uint128 budget,
        uint128 price,
        uint128 fee,
        uint128 drawFee,
        uint8 verifiers,
        uint8 each,
        uint8 looks,
        bool looked
    ) public pure {
        if (budget >= MOST || price > budget || fee >= MOST || drawFee >= MOST) return;
        if (verifiers > 32 || each > 64 || looks > uint256(verifiers) * each) return;
        uint256 escrow = Fees.escrow(budget, verifiers, each, fee, looked ? 1 : 0, drawFee);
        uint256 paid = uint256(price) + verifiers * Fees.ofSeat(fee, each);
        paid += (looked ? looks * uint256(fee) + 12 * uint256(drawFee) : 8 * uint256(drawFee));
        assert(escrow >= paid);
    }

    /// @dev A bid that is taken is lower than the best one by at least 2 in 100, and nothing undercuts a bid of 0.
    function check_bid_isLowerByTheUndercut(uint128 best, uint128 price, uint64 overtime, uint32 extension)
        public
        pure
    {
        if (extension == 0 || best >= MOST || price > best) return;
        uint256 undercut = Bids.undercut(best, overtime, extension);
        assert(undercut >= 1 && undercut * 100 >= uint256(best) * 2);
        assert(undercut <= uint256(best) + 1);
        if (best == 0) assert(uint256(price) + undercut > best);
    }

    /// @dev The shares of a jury are never more than its bond.
    function check_shares_areWithinTheBond(uint128 fee, uint8 jurors, uint8 paid) public pure {
        if (jurors == 0 || paid > jurors) return;
        uint256 share = uint256(fee) / jurors;
        assert(share * paid <= fee);
    }

    /// @dev The slots of the levels that are chosen are counted without overflow, and each chosen level's stake is enough.
    function check_choose_countsEverySlot(uint16[16] memory lengths, uint128 unit, uint128 least)
        public
        pure
    {
        if (unit == 0 || unit >= 1 << 79) return;
        Pool.Choice memory choice = Pool.choose(0, lengths, unit, least);
        uint256 slots;
        uint256 highest;
        for (uint256 level; level < 16; ++level) {
            if (lengths[level] == 0 || uint256(unit) << level < least) continue;
            slots += uint256(lengths[level]) << level;
            highest = level;
        }
        assert(choice.slots == slots && choice.highest == highest);
    }
}
