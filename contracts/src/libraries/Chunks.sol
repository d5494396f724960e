// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Instruction, OperandChunk, TensorType} from "../types/Instruction.sol";
import {Instructions} from "./Instructions.sol";
import {Words} from "./Words.sol";

/// @title Reading operands from the chunks that a judgment provides: encoding.md section 1.
library Chunks {
    /// @notice The judgment needs chunk `index` of operand `operand`, which was not provided.
    error ChunkMissing(uint256 operand, uint256 index);
    /// @notice Chunk `index` of operand `operand` must have `due` bytes by its type; it has `given`.
    error ChunkLength(uint256 operand, uint256 index, uint256 due, uint256 given);
    /// @notice The instruction reads element `index` of operand `operand`, which has fewer.
    error OperandOutside(uint256 operand, uint256 index);
    /// @notice The instruction has no operand number `operand`.
    error OperandMissing(uint256 operand);

    /// @notice Canonical element `index` (flat) of operand number `operand`.
    function load(Instruction memory ins, uint256 operand, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        TensorType memory t = typeOf(ins, operand);
        if (index >= Instructions.elementCount(t)) revert OperandOutside(operand, index);
        (uint64 chunk, uint256 place) = Instructions.locate(t, index);
        return Words.canonical(t.code, Words.raw(t.code, find(t, operand, chunk, chunks), place));
    }

    /// @notice Bytes of chunk `index` of operand number `operand`, which has type `t`.
    function find(TensorType memory t, uint256 operand, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (bytes calldata)
    {
        for (uint256 k; k < chunks.length; ++k) {
            OperandChunk calldata chunk = chunks[k];
            if (chunk.operand != operand || chunk.index != index) continue;
            bytes calldata data = chunk.data;
            uint256 due = Instructions.chunkLength(t, index);
            if (data.length != due) revert ChunkLength(operand, index, due, data.length);
            return data;
        }
        revert ChunkMissing(operand, index);
    }

    /// @notice Type of operand number `operand`.
    function typeOf(Instruction memory ins, uint256 operand) internal pure returns (TensorType memory) {
        if (operand >= ins.operands.length) revert OperandMissing(operand);
        return ins.operands[operand];
    }
}
