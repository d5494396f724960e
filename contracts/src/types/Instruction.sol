// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

// Parts of an instruction, and the chunks that a judgment opens: encoding.md sections 1 and 3.

/// @notice Type of a value: an element code of `TypeCode` and up to eight dimensions.
struct TensorType {
    uint8 code;
    uint8 rank;
    /// Number of canonical bytes; it follows from code and dimensions.
    uint64 size;
    /// 32 bits per dimension, the outermost in the highest bits, 0 after the last one; `Shapes` reads them.
    uint256 dimensions;
}

/// @notice A decoded instruction, without its attributes.
struct Instruction {
    uint16 opcode;
    /// Trace leaf of the first result.
    uint32 first;
    /// Trace leaf of each operand.
    uint32[] leaves;
    TensorType[] operands;
    TensorType[] results;
}

/// @notice Bytes of chunk `index` of operand number `operand`, as committed.
struct OperandChunk {
    uint8 operand;
    uint64 index;
    bytes data;
}

/// @notice Element codes: encoding.md section 1.
library TypeCode {
    uint8 internal constant F32 = 0;
    uint8 internal constant U8 = 1;
    uint8 internal constant I32 = 2;
    uint8 internal constant U32 = 3;
    uint8 internal constant I64 = 4;
    uint8 internal constant BOOL = 5;
}

/// @notice Opcodes: encoding.md section 3.
library Opcode {
    uint16 internal constant INPUT = 0x0001;
    uint16 internal constant CONSTANT = 0x0002;
    uint16 internal constant OUTPUT = 0x0003;
    uint16 internal constant CALL = 0x0004;

    uint16 internal constant STRIDED = 0x0101;
    uint16 internal constant CONCAT = 0x0102;
    uint16 internal constant PAD = 0x0103;
    uint16 internal constant GATHER = 0x0104;

    uint16 internal constant ADD = 0x0201;
    uint16 internal constant SUB = 0x0202;
    uint16 internal constant MUL = 0x0203;
    uint16 internal constant DIV = 0x0204;
    uint16 internal constant MINIMUM = 0x0205;
    uint16 internal constant MAXIMUM = 0x0206;
    uint16 internal constant SQRT = 0x0207;
    uint16 internal constant NEG = 0x0208;
    uint16 internal constant ABS = 0x0209;
    uint16 internal constant FLOOR = 0x020a;
    uint16 internal constant RINT = 0x020b;
    uint16 internal constant SCALE = 0x020c;

    uint16 internal constant LT = 0x0301;
    uint16 internal constant LE = 0x0302;
    uint16 internal constant EQ = 0x0303;
    uint16 internal constant SELECT = 0x0304;

    uint16 internal constant AND = 0x0401;
    uint16 internal constant OR = 0x0402;
    uint16 internal constant XOR = 0x0403;
    uint16 internal constant SHL = 0x0404;
    uint16 internal constant SHR = 0x0405;
    uint16 internal constant MULHI = 0x0406;

    uint16 internal constant CAST = 0x0501;
    uint16 internal constant BITS = 0x0502;

    uint16 internal constant EXPONENT = 0x0601;
    uint16 internal constant QUANTISE = 0x0602;
    uint16 internal constant TO_FIXED = 0x0603;
    uint16 internal constant ROUND_SCALED = 0x0604;

    uint16 internal constant DOT = 0x0701;
    uint16 internal constant SUM = 0x0702;
    uint16 internal constant MAX = 0x0703;
    uint16 internal constant ARGMAX = 0x0704;
    uint16 internal constant SCATTER_SUM = 0x0705;

    uint16 internal constant PREFIX_SUM = 0x0801;

    uint16 internal constant PHILOX = 0x0901;
}
