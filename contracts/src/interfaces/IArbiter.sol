// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OperandChunk} from "../types/Instruction.sol";

/// @title Computes one element of one primitive.
/// @notice Pure: every function is total in the operands' bits. It reverts only on an ill-formed question,
/// such as an unknown opcode, an element outside the result, or a chunk that is missing or has the wrong
/// length.
interface IArbiter {
    /// @notice The opcode has no element: it is an edge, a call, or not in encoding.md section 3. Or block
    /// results were asked of an opcode that is not a reduction.
    error NotAPrimitive(uint16 opcode);
    /// @notice A primitive has one result; this instruction has `results`.
    error OneResultExpected(uint256 results);
    /// @notice The result has `count` elements; `index` is out of range.
    error ElementOutside(uint256 index, uint256 count);
    /// @notice The row has `count` blocks: split it and judge a single block.
    error SplitNeeded(uint256 count);

    /// @notice Version of the arithmetic that this arbiter implements.
    function arithmetic() external view returns (uint16);

    /// @notice Number of blocks that fold into one element: 1 unless the instruction is a reduction over rows
    /// longer than a chunk.
    function blocks(bytes calldata instruction) external view returns (uint32);

    /// @notice Bits, zero-extended, of the element with flat index `index`. Requires an instruction with
    /// `blocks == 1`.
    /// @param chunks The operand chunks that the element needs, in any order; other chunks are not read.
    function element(bytes calldata instruction, uint64 index, OperandChunk[] calldata chunks)
        external
        view
        returns (uint64 bits);

    /// @notice The word that block `blockIndex` contributes to the row of element `index` (encoding.md,
    /// "Block results").
    function blockResult(
        bytes calldata instruction,
        uint64 index,
        uint32 blockIndex,
        OperandChunk[] calldata chunks
    ) external view returns (uint64 word);

    /// @notice Folds the words of consecutive blocks, in order, into one word.
    function fold(uint16 opcode, uint64[] calldata words) external view returns (uint64 word);

    /// @notice The element's bits for a folded word (argmax: its low half).
    function finish(uint16 opcode, uint64 word) external view returns (uint64 bits);
}
