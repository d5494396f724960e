// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Flat indices and shapes: encoding.md section 3. The last axis is contiguous.
library Shapes {
    /// @notice A shape of rank `rank` cannot take part in a result of rank `resultRank`.
    error RanksDisagree(uint256 rank, uint256 resultRank);

    /// @notice Coordinates of flat index `flat` in `shape`.
    function unravel(uint32[] memory shape, uint256 flat) internal pure returns (uint256[] memory position) {
        position = new uint256[](shape.length);
        // Dimensions are never 0.
        for (uint256 k = shape.length; k > 0; --k) {
            position[k - 1] = flat % shape[k - 1];
            flat /= shape[k - 1];
        }
    }

    /// @notice Flat index in an operand of `shape` of the element that broadcasting puts at `flat` of `result`:
    /// aligned at the right, dimensions of size 1 repeat.
    function broadcast(uint32[] memory result, uint32[] memory shape, uint256 flat)
        internal
        pure
        returns (uint256 index)
    {
        uint256 skipped = result.length - _requireRank(shape.length, result.length);
        uint256 stride = 1;
        for (uint256 k = shape.length; k > 0; --k) {
            uint256 dimension = shape[k - 1];
            uint256 extent = result[skipped + k - 1];
            if (dimension != 1) index += (flat % extent) * stride;
            flat /= extent;
            stride *= dimension;
        }
    }

    /// @notice Product of the dimensions from axis `begin` on.
    function volume(uint32[] memory shape, uint256 begin) internal pure returns (uint256 product) {
        product = 1;
        for (uint256 k = begin; k < shape.length; ++k) {
            product *= shape[k];
        }
    }

    function _requireRank(uint256 rank, uint256 resultRank) private pure returns (uint256) {
        if (rank > resultRank) revert RanksDisagree(rank, resultRank);
        return rank;
    }
}
