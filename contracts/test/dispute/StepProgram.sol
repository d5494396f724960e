// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Opcode, TypeCode} from "../../src/types/Instruction.sol";
import {ChunkOpening, InstructionOpening, ProgramOpening} from "../../src/types/Openings.sol";
import {LeafTree} from "./LeafTree.sol";

/// @title A step program with a call, a long reduction and edges of every kind, and its values: encoding.md
/// sections 3 to 5.
/// @notice State: x f32 [300] (two chunks), n i64 [1]. Constants: c f32 [300], and two that nothing reads.
///
///     0 input 0          leaf 0  x                      callee:  0 input 0   leaf 0
///     1 input 1          leaf 1  n                               1 input 1   leaf 1
///     2 input 2          leaf 2  c                               2 add       leaf 2
///     3 call (0, 2)      leaf 3  x + c                           3 output 0
///     4 constant 1       leaf 4  i64 [16512]: 129 chunks
///     5 sum (4)          leaf 5  16512
///     6 add (1, 5)       leaf 6  n + 16512
///     7 output 0 (3)
///     8 output 1 (6)
library StepProgram {
    struct Program {
        bytes[] instructions;
        ProgramOpening opening;
        bytes32 id;
    }

    uint32 internal constant ROW = 129 * 128;
    bytes4 internal constant ONE = 0x0000803f;
    bytes4 internal constant TWO = 0x00000040;
    bytes4 internal constant THREE = 0x00004040;

    // ------------------------------------------------------------------ programs

    function top() internal pure returns (Program memory) {
        bytes[] memory list = new bytes[](9);
        list[0] = instruction(Opcode.INPUT, 0, "", x(), abi.encodePacked(uint32(0)));
        list[1] = instruction(Opcode.INPUT, 1, "", n(), abi.encodePacked(uint32(1)));
        list[2] = instruction(Opcode.INPUT, 2, "", x(), abi.encodePacked(uint32(2)));
        list[3] = instruction(
            Opcode.CALL, 3, bytes.concat(operand(0, x()), operand(2, x())), x(), abi.encode(callee().id)
        );
        list[4] = instruction(Opcode.CONSTANT, 4, "", row(), hex"0100000000000000");
        list[5] = instruction(Opcode.SUM, 5, operand(4, row()), n(), "");
        list[6] = instruction(Opcode.ADD, 6, bytes.concat(operand(1, n()), operand(5, n())), n(), "");
        list[7] = output(7, operand(3, x()), 0);
        list[8] = output(7, operand(6, n()), 1);
        return program(list, 7);
    }

    function callee() internal pure returns (Program memory) {
        bytes[] memory list = new bytes[](4);
        list[0] = instruction(Opcode.INPUT, 0, "", x(), abi.encodePacked(uint32(0)));
        list[1] = instruction(Opcode.INPUT, 1, "", x(), abi.encodePacked(uint32(1)));
        list[2] = instruction(Opcode.ADD, 2, bytes.concat(operand(0, x()), operand(1, x())), x(), "");
        list[3] = output(3, operand(2, x()), 0);
        return program(list, 3);
    }

    /// @notice A program of these instructions; the signature's preimage is not used on the chain.
    function program(bytes[] memory list, uint32 leaves) internal pure returns (Program memory p) {
        p.instructions = list;
        p.opening = ProgramOpening(
            LeafTree.root(_hashes(list)), uint32(list.length), leaves, keccak256(abi.encode(list))
        );
        p.id = sha256(
            abi.encodePacked(
                bytes1(0x02), p.opening.instructionRoot, uint32(list.length), leaves, p.opening.signature
            )
        );
    }

    function open(Program memory p, uint32 number) internal pure returns (InstructionOpening memory) {
        return InstructionOpening(
            p.opening, number, p.instructions[number], LeafTree.path(_hashes(p.instructions), number)
        );
    }

    // ------------------------------------------------------------------ values

    /// @notice Values of the top frame that starts from x = 1, n = 5.
    function topValues() internal pure returns (bytes[] memory v) {
        v = new bytes[](7);
        v[0] = floats(ONE);
        v[1] = integer(5);
        v[2] = floats(TWO);
        v[3] = floats(THREE);
        v[4] = ones();
        v[5] = integer(ROW);
        v[6] = integer(5 + uint64(ROW));
    }

    function calleeValues() internal pure returns (bytes[] memory v) {
        v = new bytes[](3);
        v[0] = floats(ONE);
        v[1] = floats(TWO);
        v[2] = floats(THREE);
    }

    /// @notice Roots of values: the leaves of a trace, state or constants tree.
    function roots(bytes[] memory values) internal pure returns (bytes32[] memory list) {
        list = new bytes32[](values.length);
        for (uint256 k; k < list.length; ++k) {
            list[k] = LeafTree.root(LeafTree.chunks(values[k]));
        }
    }

    function chunk(uint8 operand_, bytes memory value, uint32 index)
        internal
        pure
        returns (ChunkOpening memory)
    {
        return ChunkOpening(
            operand_, index, LeafTree.chunk(value, index), LeafTree.path(LeafTree.chunks(value), index)
        );
    }

    /// @notice 300 copies of the same float.
    function floats(bytes4 value) internal pure returns (bytes memory data) {
        data = new bytes(1200);
        for (uint256 k; k < 1200; ++k) {
            data[k] = value[k % 4];
        }
    }

    /// @notice One i64, little-endian.
    function integer(uint64 value) internal pure returns (bytes memory data) {
        data = new bytes(8);
        for (uint256 k; k < 8; ++k) {
            data[k] = bytes1(uint8(value >> (8 * k)));
        }
    }

    function ones() internal pure returns (bytes memory data) {
        data = new bytes(8 * uint256(ROW));
        for (uint256 k; k < ROW; ++k) {
            data[8 * k] = 0x01;
        }
    }

    // ------------------------------------------------------------------ encoding

    function x() internal pure returns (bytes memory) {
        return abi.encodePacked(TypeCode.F32, uint8(1), uint32(300));
    }

    function n() internal pure returns (bytes memory) {
        return abi.encodePacked(TypeCode.I64, uint8(1), uint32(1));
    }

    function row() internal pure returns (bytes memory) {
        return abi.encodePacked(TypeCode.I64, uint8(1), ROW);
    }

    function operand(uint32 leaf, bytes memory type_) internal pure returns (bytes memory) {
        return abi.encodePacked(leaf, type_);
    }

    /// @notice An instruction with one result; all operands have types of one dimension (10 bytes with the
    /// leaf).
    function instruction(
        uint16 opcode,
        uint32 first,
        bytes memory operands,
        bytes memory result,
        bytes memory attributes
    ) internal pure returns (bytes memory) {
        return abi.encodePacked(
            opcode, first, uint8(operands.length / 10), operands, uint8(1), result, attributes
        );
    }

    function output(uint32 first, bytes memory operand_, uint32 k) internal pure returns (bytes memory) {
        return abi.encodePacked(Opcode.OUTPUT, first, uint8(1), operand_, uint8(0), k);
    }

    function _hashes(bytes[] memory list) private pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](list.length);
        for (uint256 k; k < list.length; ++k) {
            hashes[k] = LeafTree.leaf(list[k]);
        }
    }
}
