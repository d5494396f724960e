// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {DrawWords} from "./DrawWords.sol";

/// @title Which segments of seats, and which looks, are looked at: audit.md section 2.
library Picks {
    using DrawWords for DrawWords.Stream;

    /// @dev Unit of a chance: hundredths of a percent.
    uint32 private constant ALL = 10_000;

    /// @notice Picks each candidate with probability `chance / 10,000`, at most `most` of them. Candidates
    /// are the bits of `candidates`, from the lowest up.
    /// @param stream Gives one number below 10,000 for each candidate, until `most` are picked.
    function among(DrawWords.Stream memory stream, uint256 candidates, uint256 chance, uint256 most)
        internal
        pure
        returns (uint256 picked, uint256 count)
    {
        for (uint256 slot; candidates >> slot != 0 && count < most; ++slot) {
            if (candidates >> slot & 1 == 0 || stream.below(ALL) >= chance) continue;
            picked |= 1 << slot;
            ++count;
        }
    }
}
