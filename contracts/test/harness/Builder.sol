// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OperandChunk} from "../../src/types/Instruction.sol";

/// @title Instructions and chunks for tests, encoded as in encoding.md section 3.
library Builder {
    /// @notice An encoded type.
    function shape(uint8 code) internal pure returns (bytes memory) {
        return abi.encodePacked(code, uint8(0));
    }

    function shape(uint8 code, uint32 a) internal pure returns (bytes memory) {
        return abi.encodePacked(code, uint8(1), a);
    }

    function shape(uint8 code, uint32 a, uint32 b) internal pure returns (bytes memory) {
        return abi.encodePacked(code, uint8(2), a, b);
    }

    function shape(uint8 code, uint32 a, uint32 b, uint32 c) internal pure returns (bytes memory) {
        return abi.encodePacked(code, uint8(3), a, b, c);
    }

    /// @notice An instruction of `operands` (encoded types; leaves 0, 1, ...) and one result.
    function instruction(uint16 opcode, bytes[] memory operands, bytes memory result, bytes memory attributes)
        internal
        pure
        returns (bytes memory out)
    {
        out = abi.encodePacked(opcode, uint32(operands.length), uint8(operands.length));
        for (uint256 k; k < operands.length; ++k) {
            out = abi.encodePacked(out, uint32(k), operands[k]);
        }
        out = abi.encodePacked(out, uint8(1), result, attributes);
    }

    function list() internal pure returns (bytes[] memory) {
        return new bytes[](0);
    }

    function list(bytes memory a) internal pure returns (bytes[] memory l) {
        l = new bytes[](1);
        l[0] = a;
    }

    function list(bytes memory a, bytes memory b) internal pure returns (bytes[] memory l) {
        l = new bytes[](2);
        (l[0], l[1]) = (a, b);
    }

    function list(bytes memory a, bytes memory b, bytes memory c) internal pure returns (bytes[] memory l) {
        l = new bytes[](3);
        (l[0], l[1], l[2]) = (a, b, c);
    }

    /// @notice Chunk 0 of operands 0, 1, ...
    function chunks(bytes[] memory data) internal pure returns (OperandChunk[] memory c) {
        c = new OperandChunk[](data.length);
        for (uint8 k; k < data.length; ++k) {
            c[k] = OperandChunk(k, 0, data[k]);
        }
    }

    /// @notice One chunk of one operand.
    function chunk(uint8 operand, uint64 index, bytes memory data)
        internal
        pure
        returns (OperandChunk[] memory c)
    {
        c = new OperandChunk[](1);
        c[0] = OperandChunk(operand, index, data);
    }

    /// @notice `count` copies of the same bytes.
    function repeated(bytes memory unit, uint256 count) internal pure returns (bytes memory out) {
        out = new bytes(unit.length * count);
        for (uint256 k; k < out.length; ++k) {
            out[k] = unit[k % unit.length];
        }
    }

    /// @notice Bytes 0, 1, 2, ... modulo 256.
    function counting(uint256 count) internal pure returns (bytes memory out) {
        out = new bytes(count);
        for (uint256 k; k < count; ++k) {
            out[k] = bytes1(uint8(k));
        }
    }
}
