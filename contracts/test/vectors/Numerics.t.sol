// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IArbiter} from "../../src/interfaces/IArbiter.sol";
import {OperandChunk, TypeCode} from "../../src/types/Instruction.sol";
import {Production} from "../harness/Production.sol";

/// @title Replays the primitives of tests/vectors/numerics.json through the arbiter, element by element.
contract NumericsVectorsTest is Production {
    IArbiter private arbiter;
    string private json;

    function setUp() public {
        arbiter = _newArbiter();
        json = vm.readFile("tests/vectors/numerics.json");
    }

    function test_element_everyNumericsVector_succeeds() public {
        vm.pauseGasMetering(); // about a billion gas in all
        string[] memory names = vm.parseJsonStringArray(json, ".primitives.name");
        bytes[] memory instructions = vm.parseJsonBytesArray(json, ".primitives.instruction");
        bytes[][3] memory operands = [_column("x"), _column("y"), _column("z")];
        bytes[] memory results = _column("out");
        bytes[] memory resultTypes = _column("out_type");
        assertGt(names.length, 100);
        for (uint256 k; k < names.length; ++k) {
            bytes[3] memory data = [operands[0][k], operands[1][k], operands[2][k]];
            this.replay(names[k], instructions[k], data, results[k], uint8(resultTypes[k][0]));
        }
    }

    /// @dev External, so that each case starts with fresh memory. Absent operands are empty.
    function replay(
        string memory name,
        bytes memory instruction,
        bytes[3] memory operands,
        bytes memory expected,
        uint8 code
    ) external view {
        uint256 size = code == TypeCode.I64 ? 8 : code == TypeCode.U8 || code == TypeCode.BOOL ? 1 : 4;
        uint64[] memory words = _compute(instruction, expected.length / size, _chunks(operands));
        for (uint256 k; k < words.length; ++k) {
            uint64 due = _word(expected, k, size);
            if (words[k] != due) assertEq(words[k], due, string.concat(name, " element ", vm.toString(k)));
        }
    }

    function _compute(bytes memory instruction, uint256 count, OperandChunk[] memory chunks)
        private
        view
        returns (uint64[] memory words)
    {
        uint64[] memory row = new uint64[](arbiter.blocks(instruction));
        uint16 opcode = uint16(bytes2(instruction));
        words = new uint64[](count);
        for (uint64 k; k < count; ++k) {
            if (row.length == 1) {
                words[k] = arbiter.element(instruction, k, chunks);
                continue;
            }
            for (uint32 b; b < row.length; ++b) {
                row[b] = arbiter.blockResult(instruction, k, b, chunks);
            }
            words[k] = arbiter.finish(opcode, arbiter.fold(opcode, row));
        }
    }

    function _column(string memory name) private view returns (bytes[] memory) {
        return vm.parseJsonBytesArray(json, string.concat(".primitives.", name));
    }

    function _chunks(bytes[3] memory data) private pure returns (OperandChunk[] memory chunks) {
        uint256 count;
        for (uint256 k; k < data.length; ++k) {
            count += (data[k].length + 1023) / 1024;
        }
        chunks = new OperandChunk[](count);
        count = 0;
        for (uint8 k; k < data.length; ++k) {
            for (uint64 index; index * 1024 < data[k].length; ++index) {
                uint256 left = data[k].length - index * 1024;
                bytes memory piece = new bytes(left < 1024 ? left : 1024);
                for (uint256 b; b < piece.length; ++b) {
                    piece[b] = data[k][index * 1024 + b];
                }
                chunks[count++] = OperandChunk(k, index, piece);
            }
        }
    }

    /// @dev Little-endian number `k` of `size` bytes.
    function _word(bytes memory data, uint256 k, uint256 size) private pure returns (uint64 word) {
        for (uint256 b = size; b > 0; --b) {
            word = (word << 8) | uint8(data[k * size + b - 1]);
        }
    }
}
