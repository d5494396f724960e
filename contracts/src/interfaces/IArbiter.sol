// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OperandChunk} from "../types/Instruction.sol";

/// @title Computes one element of one primitive.
/// @notice Pure: every function is total in the operands' bits and reverts only on an ill-formed question
/// (unknown opcode, element outside the result, a chunk that is missing, of a wrong index or length).
interface IArbiter {
    /// @notice The opcode has no element: an edge, a call, or none of encoding.md section 3.
    error NotAPrimitive(uint16 opcode);
    /// @notice A primitive has one result; the instruction states `results`.
    error OneResultExpected(uint256 results);
    /// @notice The result has `count` elements; there is no element `index`.
    error ElementOutside(uint256 index, uint256 count);
    /// @notice The row has `count` blocks: split it and judge one of them.
    error SplitNeeded(uint256 count);

    /// @notice Version of the arithmetic that this arbiter serves.
    function arithmetic() external view returns (uint16);

    /// @notice How many blocks fold into one element: 1 unless the instruction is a reduction over rows longer than a chunk.
    function blocks(bytes calldata instruction) external view returns (uint32);

    /// @notice Bits of the element with flat index `index`, zero-extended, of an instruction with `blocks == 1`.
    /// @param chunks The operand chunks that the element needs, in any order; others are not read.
    function element(bytes calldata instruction, uint64 index, OperandChunk[] calldata chunks)
        external
        view
        returns (uint64 bits);

    /// @notice The word that block number `blockIndex` of row of element `index` contributes (encoding.md, "Block results").
    function blockResult(
        bytes calldata instruction,
        uint64 index,
        uint32 blockIndex,
        OperandChunk[] calldata chunks
    ) external view returns (uint64 word);

    /// @notice Folds words of consecutive blocks, in order, into one word.
    function fold(uint16 opcode, uint64[] calldata words) external view returns (uint64 word);

    /// @notice The element's bits for a folded word (argmax: its low half).
    function finish(uint16 opcode, uint64 word) external view returns (uint64 bits);
}
