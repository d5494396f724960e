// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice A node of a tree and its path to the root: siblings, bottom first (encoding.md section 2).
struct Node {
    uint32 lo;
    uint32 size;
    bytes32 hash;
    bytes32[] path;
}

/// @notice A 32-byte leaf at an index that the context fixes.
struct Leaf {
    bytes32 value;
    bytes32[] path;
}

/// @notice Preimage of a program id.
struct ProgramOpening {
    bytes32 instructionRoot;
    uint32 instructions;
    uint32 leaves;
    bytes32 signature;
}

/// @notice Instruction number `n` under a program id.
struct InstructionOpening {
    ProgramOpening program;
    uint32 n;
    bytes data;
    bytes32[] path;
}

/// @notice One chunk of the value of operand number `operand`. For a chunk of the claimed result, `operand`
/// is ignored.
struct ChunkOpening {
    uint8 operand;
    uint32 index;
    bytes data;
    bytes32[] path;
}
