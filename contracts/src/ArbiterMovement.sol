// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BigEndian} from "./libraries/BigEndian.sol";
import {Chunks} from "./libraries/Chunks.sol";
import {Shapes} from "./libraries/Shapes.sol";
import {Words} from "./libraries/Words.sol";
import {Instruction, OperandChunk, TensorType} from "./types/Instruction.sol";

/// @title One element of a primitive that moves elements: encoding.md section 3, opcodes 0x0002 and 0x01xx.
library ArbiterMovement {
    /// @notice A `strided` instruction reads flat index `index`, before the start of its operand.
    error StridedOutside(int256 index);
    /// @notice Axis `axis` is out of range for rank `rank`.
    error AxisOutside(uint256 axis, uint256 rank);

    /// @notice `constant`: the literal, in every element.
    function constantOf(Instruction memory ins, bytes calldata attributes) internal pure returns (uint64) {
        return _literal(ins, attributes, 0);
    }

    /// @notice `strided`: x at offset + sum of index times stride.
    function strided(
        Instruction memory ins,
        bytes calldata attributes,
        uint256 index,
        OperandChunk[] calldata chunks
    ) internal pure returns (uint64) {
        uint256[] memory position = Shapes.unravel(ins.results[0], index);
        int256 source = BigEndian.i64At(attributes, 0);
        // unchecked: at most eight products of a 31-bit and a 64-bit number.
        unchecked {
            for (uint256 k; k < position.length; ++k) {
                source += int256(position[k]) * BigEndian.i64At(attributes, 8 * (k + 1));
            }
        }
        if (source < 0) revert StridedOutside(source);
        return Chunks.load(ins, 0, uint256(source), chunks);
    }

    /// @notice `concat`: the element from the operand whose part of the axis holds it.
    function concat(
        Instruction memory ins,
        bytes calldata attributes,
        uint256 index,
        OperandChunk[] calldata chunks
    ) internal pure returns (uint64) {
        TensorType memory result = ins.results[0];
        uint256 axis = BigEndian.u8At(attributes, 0);
        if (axis >= result.rank) revert AxisOutside(axis, result.rank);
        uint256 inner = Shapes.volume(result, axis + 1);
        uint256 whole = Shapes.dimension(result, axis);
        uint256 along = index / inner % whole;
        uint256 outer = index / inner / whole;
        uint256 piece;
        uint256 extent = _extent(ins, piece, axis);
        while (along >= extent) {
            along -= extent;
            extent = _extent(ins, ++piece, axis);
        }
        return Chunks.load(ins, piece, (outer * extent + along) * inner + index % inner, chunks);
    }

    /// @notice `pad`: x shifted by `low` along each axis, and the literal outside x.
    function pad(
        Instruction memory ins,
        bytes calldata attributes,
        uint256 index,
        OperandChunk[] calldata chunks
    ) internal pure returns (uint64) {
        uint256[] memory position = Shapes.unravel(ins.results[0], index);
        TensorType memory x = Chunks.typeOf(ins, 0);
        if (x.rank != position.length) revert Shapes.RanksDisagree(x.rank, position.length);
        uint256 source;
        for (uint256 k; k < position.length; ++k) {
            uint256 low = BigEndian.u32At(attributes, 4 * k);
            uint256 extent = Shapes.dimension(x, k);
            if (position[k] < low || position[k] - low >= extent) {
                return _literal(ins, attributes, 4 * position.length);
            }
            source = source * extent + (position[k] - low);
        }
        return Chunks.load(ins, 0, source, chunks);
    }

    /// @notice `gather`: x[index[n], c]; zero bits where the index is outside x's first axis.
    function gather(Instruction memory ins, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        TensorType memory x = Chunks.typeOf(ins, 0);
        if (x.rank == 0) revert AxisOutside(0, 0);
        uint256 inner = Shapes.volume(x, 1);
        int256 row = int32(uint32(Chunks.load(ins, 1, index / inner, chunks)));
        if (row < 0 || row >= int256(Shapes.dimension(x, 0))) return 0;
        return Chunks.load(ins, 0, uint256(row) * inner + index % inner, chunks);
    }

    /// @dev Size of operand `piece` along `axis`.
    function _extent(Instruction memory ins, uint256 piece, uint256 axis) private pure returns (uint256) {
        TensorType memory t = Chunks.typeOf(ins, piece);
        if (axis >= t.rank) revert AxisOutside(axis, t.rank);
        return Shapes.dimension(t, axis);
    }

    /// @dev The canonical literal of the result's type at byte `offset` of the attributes.
    function _literal(Instruction memory ins, bytes calldata attributes, uint256 offset)
        private
        pure
        returns (uint64)
    {
        uint8 code = ins.results[0].code;
        return Words.canonical(code, Words.raw(code, BigEndian.from(attributes, offset), 0));
    }
}
