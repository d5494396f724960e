// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Arbiter} from "../../src/Arbiter.sol";
import {OperandChunk} from "../../src/types/Instruction.sol";

/// @title The arbiter, many elements a call: for differential tests from other languages, where a call costs
/// milliseconds and an element microseconds.
contract ArbiterHarness is Arbiter {
    /// @notice Elements first, first + 1, ... first + count - 1 of one instruction, from all chunks of its operands.
    function elements(bytes calldata instruction, uint64 first, uint64 count, OperandChunk[] calldata chunks)
        external
        pure
        returns (uint64[] memory words)
    {
        words = new uint64[](count);
        for (uint64 k; k < count; ++k) {
            words[k] = element(instruction, first + k, chunks);
        }
    }

    /// @notice All block results of the row that element `index` of a reduction reads.
    function blockResults(bytes calldata instruction, uint64 index, OperandChunk[] calldata chunks)
        external
        pure
        returns (uint64[] memory words)
    {
        words = new uint64[](blocks(instruction));
        for (uint32 k; k < words.length; ++k) {
            words[k] = blockResult(instruction, index, k, chunks);
        }
    }
}
