// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Arbiter} from "../../src/Arbiter.sol";
import {OperandChunk} from "../../src/types/Instruction.sol";

/// @title The arbiter with many elements per call, for differential tests from other languages, where a call
/// costs milliseconds and an element microseconds.
contract ArbiterHarness is Arbiter {
    /// @notice Elements first, first + 1, ... first + count - 1 of one instruction, from all chunks of its
    /// operands. Long rows are split into blocks, folded and finished.
    function elements(bytes calldata instruction, uint64 first, uint64 count, OperandChunk[] calldata chunks)
        external
        view
        returns (uint64[] memory words)
    {
        words = new uint64[](count);
        uint16 opcode = uint16(bytes2(instruction));
        uint64[] memory row = new uint64[](blocks(instruction));
        for (uint64 k; k < count; ++k) {
            if (row.length == 1) {
                words[k] = element(instruction, first + k, chunks);
                continue;
            }
            for (uint32 b; b < row.length; ++b) {
                row[b] = blockResult(instruction, first + k, b, chunks);
            }
            words[k] = finish(opcode, this.fold(opcode, row));
        }
    }
}
