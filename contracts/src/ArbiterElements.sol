// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BigEndian} from "./libraries/BigEndian.sol";
import {Chunks} from "./libraries/Chunks.sol";
import {Fixed} from "./libraries/Fixed.sol";
import {Float32} from "./libraries/Float32.sol";
import {Instructions} from "./libraries/Instructions.sol";
import {Philox} from "./libraries/Philox.sol";
import {Shapes} from "./libraries/Shapes.sol";
import {Words} from "./libraries/Words.sol";
import {Instruction, OperandChunk, TypeCode} from "./types/Instruction.sol";
import {Opcode} from "./types/Instruction.sol";

/// @title One element of a single-element primitive: encoding.md section 3, opcodes 0x02xx to 0x05xx, 0x0602
/// to 0x0604, and `philox`.
/// @notice Operands, except those of `philox`, broadcast as in numpy.
library ArbiterElements {
    /// @notice The opcode is not defined for operands of element code `code`.
    error CodeUnsupported(uint16 opcode, uint8 code);
    /// @notice No cast from element code `from` to `to`.
    error CastUndefined(uint8 from, uint8 to);

    /// @notice Opcodes 0x02xx except `scale`: arithmetic on one type.
    function arithmetic(Instruction memory ins, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        uint16 opcode = ins.opcode;
        uint8 code = Chunks.typeOf(ins, 0).code;
        uint64 a = operand(ins, 0, index, chunks);
        if (opcode >= Opcode.SQRT) {
            if (code != TypeCode.F32) revert CodeUnsupported(opcode, code);
            return _floatUnary(opcode, uint32(a));
        }
        uint64 b = operand(ins, 1, index, chunks);
        if (code == TypeCode.F32) return _floatBinary(opcode, uint32(a), uint32(b));
        if (code == TypeCode.U8 || code == TypeCode.BOOL || opcode > Opcode.MUL) {
            revert CodeUnsupported(opcode, code);
        }
        (int256 x, int256 y) = (Words.toInteger(code, a), Words.toInteger(code, b));
        // unchecked: 64-bit numbers; their product fits 128 bits.
        unchecked {
            if (opcode == Opcode.ADD) return Words.fromInteger(code, x + y);
            if (opcode == Opcode.SUB) return Words.fromInteger(code, x - y);
            return Words.fromInteger(code, x * y);
        }
    }

    /// @notice `scale`: x * 2^k with one rounding.
    function scale(Instruction memory ins, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        int32 k = int32(uint32(operand(ins, 1, index, chunks)));
        return Float32.scale(uint32(operand(ins, 0, index, chunks)), k);
    }

    /// @notice `lt`, `le`, `eq`: 0 or 1; false on NaN.
    function compare(Instruction memory ins, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        uint8 code = Chunks.typeOf(ins, 0).code;
        uint64 a = operand(ins, 0, index, chunks);
        uint64 b = operand(ins, 1, index, chunks);
        bool result;
        if (code == TypeCode.F32) {
            if (ins.opcode == Opcode.LT) result = Float32.lt(uint32(a), uint32(b));
            else if (ins.opcode == Opcode.LE) result = Float32.le(uint32(a), uint32(b));
            else result = Float32.eq(uint32(a), uint32(b));
        } else {
            (int256 x, int256 y) = (Words.toInteger(code, a), Words.toInteger(code, b));
            if (ins.opcode == Opcode.LT) result = x < y;
            else if (ins.opcode == Opcode.LE) result = x <= y;
            else result = x == y;
        }
        return result ? 1 : 0;
    }

    /// @notice `select`: the second operand where the first is true, otherwise the third. Reads only the
    /// selected operand.
    function select(Instruction memory ins, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        return operand(ins, operand(ins, 0, index, chunks) != 0 ? 1 : 2, index, chunks);
    }

    /// @notice Opcodes 0x04xx: bits of integers and bools.
    function bitwise(Instruction memory ins, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        uint16 opcode = ins.opcode;
        uint8 code = Chunks.typeOf(ins, 0).code;
        if (code == TypeCode.F32 || code == TypeCode.U8) revert CodeUnsupported(opcode, code);
        uint64 a = operand(ins, 0, index, chunks);
        uint64 b = operand(ins, 1, index, chunks);
        // Words are zero-extended, so these three results stay within the width.
        if (opcode == Opcode.AND) return a & b;
        if (opcode == Opcode.OR) return a | b;
        if (opcode == Opcode.XOR) return a ^ b;
        if (code == TypeCode.BOOL) revert CodeUnsupported(opcode, code);
        if (opcode == Opcode.MULHI) {
            if (code != TypeCode.U32) revert CodeUnsupported(opcode, code);
            // unchecked: a product of two 32-bit numbers.
            unchecked {
                return (a * b) >> 32;
            }
        }
        uint256 distance = b % (8 * Instructions.width(code));
        int256 x = Words.toInteger(code, a);
        return Words.fromInteger(code, opcode == Opcode.SHL ? x << distance : x >> distance);
    }

    /// @notice `cast`: encoding.md section 3, "Casts".
    function cast(Instruction memory ins, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        uint8 source = Chunks.typeOf(ins, 0).code;
        uint8 target = ins.results[0].code;
        if (source == target) revert CastUndefined(source, target);
        uint64 x = operand(ins, 0, index, chunks);
        if (source == TypeCode.F32) {
            // Both float zeros (sign bit only, or no bit set) are false; NaN counts as nonzero.
            if (target == TypeCode.BOOL) return Float32.isZero(uint32(x)) ? 0 : 1;
            if (target == TypeCode.I32) return uint32(Float32.toI32(uint32(x)));
            revert CastUndefined(source, target);
        }
        if (target == TypeCode.BOOL) return x == 0 ? 0 : 1;
        int256 value = Words.toInteger(source, x);
        return target == TypeCode.F32 ? Float32.fromInteger(value) : Words.fromInteger(target, value);
    }

    /// @notice `bits`: the same 32 bits reinterpreted as the other type, with NaN canonical on the f32 side.
    function bits(Instruction memory ins, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        return Words.canonical(ins.results[0].code, operand(ins, 0, index, chunks));
    }

    /// @notice `quantise` and `to_fixed`: m_p of one value.
    function fixedPoint(
        Instruction memory ins,
        bytes calldata attributes,
        uint256 index,
        OperandChunk[] calldata chunks
    ) internal pure returns (uint64) {
        uint32 x = uint32(operand(ins, 0, index, chunks));
        int32 e = int32(uint32(operand(ins, 1, index, chunks)));
        int32 p = int32(uint32(BigEndian.u8At(attributes, 0)));
        return
            ins.opcode == Opcode.QUANTISE ? uint32(Fixed.quantise(x, e, p)) : uint64(Fixed.toFixed(x, e, p));
    }

    /// @notice `round_scaled`: converts an exact integer back to f32, with one or two exponents.
    function roundScaled(
        Instruction memory ins,
        bytes calldata attributes,
        uint256 index,
        OperandChunk[] calldata chunks
    ) internal pure returns (uint64) {
        int64 value = int64(operand(ins, 0, index, chunks));
        int32 e = int32(uint32(operand(ins, 1, index, chunks)));
        int32 f = ins.operands.length == 3 ? int32(uint32(operand(ins, 2, index, chunks))) : int32(0);
        return Fixed.roundScaled(value, e, f, int32(uint32(BigEndian.u8At(attributes, 0))));
    }

    /// @notice `philox`: a random word; the key is operand 0, the step operand 1, the stream an attribute.
    function philox(
        Instruction memory ins,
        bytes calldata attributes,
        uint256 index,
        OperandChunk[] calldata chunks
    ) internal pure returns (uint64) {
        uint32 key0 = uint32(Chunks.load(ins, 0, 0, chunks));
        uint32 key1 = uint32(Chunks.load(ins, 0, 1, chunks));
        uint32 step = uint32(Chunks.load(ins, 1, 0, chunks));
        return Philox.element(uint64(index), key0, key1, step, BigEndian.u32At(attributes, 0));
    }

    /// @notice Element of operand number k that broadcasting maps to `index` of the result.
    function operand(Instruction memory ins, uint256 k, uint256 index, OperandChunk[] calldata chunks)
        internal
        pure
        returns (uint64)
    {
        uint256 place = Shapes.broadcast(ins.results[0], Chunks.typeOf(ins, k), index);
        return Chunks.load(ins, k, place, chunks);
    }

    function _floatBinary(uint16 opcode, uint32 x, uint32 y) private pure returns (uint32) {
        if (opcode == Opcode.ADD) return Float32.add(x, y);
        if (opcode == Opcode.SUB) return Float32.sub(x, y);
        if (opcode == Opcode.MUL) return Float32.mul(x, y);
        if (opcode == Opcode.DIV) return Float32.div(x, y);
        return opcode == Opcode.MINIMUM ? Float32.min(x, y) : Float32.max(x, y);
    }

    function _floatUnary(uint16 opcode, uint32 x) private pure returns (uint32) {
        if (opcode == Opcode.SQRT) return Float32.sqrt(x);
        if (opcode == Opcode.NEG) return Float32.neg(x);
        if (opcode == Opcode.ABS) return Float32.abs(x);
        return opcode == Opcode.FLOOR ? Float32.floor(x) : Float32.rint(x);
    }
}
