// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Refusals} from "./Refusals.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Open descending bids with a soft close: dispute.md section 2, "bid".
/// @notice A bid moves the end of bidding to at least `extension` seconds after it. `overtime` is the sum of
/// these moves. The minimum undercut is 2 % of the best bid. It doubles with each whole extension in the
/// overtime, up to 64 %, and never falls.
/// @dev Overtime is counted in time, not in bids. Once a bid has moved the end of bidding, the end is never
/// more than one extension after the latest bid. So a bidder that underbids itself in every block cannot
/// raise the overtime quickly: the overtime reaches k extensions no earlier than k - 1 extensions after the
/// original end of bidding.
///
/// The overtime is bounded. A bid moves the end by at most one extension, so different bids are the first
/// to take the overtime to 1, 2, 3, … extensions. The bids that do so for 2, 3, 4, … extensions are each at
/// least 4, 8, 16, … % (never more than 64 %) below the previous one of these bids. The longest such
/// sequence starts with a bid of the budget, falls by no more than it must each time, and ends with a bid
/// of 0. If it has n bids, the overtime stays below n + 1 extensions. No budget exceeds 2^94 - 1, so n is
/// at most 68.
library Bids {
    /// @notice Percent, before the end of bidding was moved by a whole extension.
    uint256 internal constant FIRST_PERCENT = 2;
    /// @notice Gives 2, 4, 8, 16, 32, 64 percent.
    uint256 internal constant MOST_DOUBLINGS = 5;

    /// @notice How much lower than `best` a bid must be. Rounded up and at least one unit, so nothing
    /// undercuts a bid of 0.
    function undercut(uint128 best, uint256 overtime, uint256 extension) internal pure returns (uint256) {
        uint256 percent = FIRST_PERCENT << Math.min(overtime / extension, MOST_DOUBLINGS);
        return Math.max(1, Math.ceilDiv(uint256(best) * percent, 100));
    }

    /// @notice Reverts unless `price` undercuts `best` by enough.
    function requireLower(uint128 best, uint128 price, uint256 overtime, uint256 extension) internal pure {
        uint256 least = undercut(best, overtime, extension);
        if (price + least > best) revert Refusals.BidTooHigh(best, least, price);
    }
}
