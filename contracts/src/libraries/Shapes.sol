// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TensorType} from "../types/Instruction.sol";

/// @title Flat indices and shapes: encoding.md section 3. The last axis is contiguous.
library Shapes {
    /// @notice A shape of rank `rank` cannot take part in a result of rank `resultRank`.
    error RanksDisagree(uint256 rank, uint256 resultRank);

    /// @notice Size along axis k; 0 for k >= rank.
    function dimension(TensorType memory t, uint256 k) internal pure returns (uint256) {
        // unchecked: after the eighth axis the shift wraps to an amount that leaves nothing.
        unchecked {
            return uint32(t.dimensions >> (224 - 32 * k));
        }
    }

    /// @notice Coordinates of flat index `flat` in the shape of `t`.
    function unravel(TensorType memory t, uint256 flat) internal pure returns (uint256[] memory position) {
        position = new uint256[](t.rank);
        // Dimensions are never 0.
        for (uint256 k = t.rank; k > 0; --k) {
            uint256 extent = dimension(t, k - 1);
            position[k - 1] = flat % extent;
            flat /= extent;
        }
    }

    /// @notice Flat index in `operand` of the element that broadcasting maps to `flat` of `result`: shapes
    /// align at the right, and dimensions of size 1 repeat.
    function broadcast(TensorType memory result, TensorType memory operand, uint256 flat)
        internal
        pure
        returns (uint256 index)
    {
        if (operand.rank > result.rank) revert RanksDisagree(operand.rank, result.rank);
        uint256 stride = 1;
        // unchecked: products of one type's dimensions are at most 2^40. Extents of the result are not 0,
        // because it has at least as many axes.
        unchecked {
            uint256 extents = result.dimensions >> (256 - 32 * uint256(result.rank));
            uint256 sizes = operand.dimensions >> (256 - 32 * uint256(operand.rank));
            for (uint256 k = operand.rank; k > 0; --k) {
                uint256 size = uint32(sizes);
                uint256 extent = uint32(extents);
                if (size != 1) index += (flat % extent) * stride;
                flat /= extent;
                stride *= size;
                sizes >>= 32;
                extents >>= 32;
            }
        }
    }

    /// @notice Product of the dimensions from axis `begin` on.
    function volume(TensorType memory t, uint256 begin) internal pure returns (uint256 product) {
        product = 1;
        for (uint256 k = begin; k < t.rank; ++k) {
            product *= dimension(t, k);
        }
    }
}
