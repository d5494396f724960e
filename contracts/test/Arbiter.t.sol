// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ArbiterElements} from "../src/ArbiterElements.sol";
import {ArbiterMovement} from "../src/ArbiterMovement.sol";
import {ArbiterReductions} from "../src/ArbiterReductions.sol";
import {IArbiter} from "../src/interfaces/IArbiter.sol";
import {BigEndian} from "../src/libraries/BigEndian.sol";
import {Chunks} from "../src/libraries/Chunks.sol";
import {Instructions} from "../src/libraries/Instructions.sol";
import {Opcode, OperandChunk, TypeCode} from "../src/types/Instruction.sol";
import {Builder as B} from "./harness/Builder.sol";
import {Production} from "./harness/Production.sol";

/// @title The arbiter on hand-written instructions: movement, splits, hostile operands, ill-formed proofs.
/// The numbers of all other primitives are replayed in vectors/Numerics.t.sol.
contract ArbiterTest is Production {
    uint8 private constant F32 = TypeCode.F32;
    uint8 private constant U8 = TypeCode.U8;
    uint8 private constant I32 = TypeCode.I32;
    uint8 private constant I64 = TypeCode.I64;
    uint8 private constant BOOL = TypeCode.BOOL;

    IArbiter private arbiter;

    function setUp() public {
        arbiter = _newArbiter();
    }

    function test_arithmetic_isVersionOne_succeeds() public view {
        assertEq(arbiter.arithmetic(), 1);
    }

    // ------------------------------------------------------------------ movement

    function test_element_stridedTranspose_succeeds() public view {
        // x [2, 3] to [3, 2]: strides 1, 3.
        bytes memory attributes = abi.encodePacked(int64(0), int64(1), int64(3));
        bytes memory ins =
            B.instruction(Opcode.STRIDED, B.list(B.shape(U8, 2, 3)), B.shape(U8, 3, 2), attributes);
        OperandChunk[] memory x = B.chunk(0, 0, B.counting(6));
        uint8[6] memory expected = [0, 3, 1, 4, 2, 5];
        for (uint64 k; k < 6; ++k) {
            assertEq(arbiter.element(ins, k, x), expected[k]);
        }
    }

    /// @dev A type's eighth dimension is not in the same word as the others.
    function test_element_eightAxes_succeeds() public view {
        bytes memory dimensions = hex"0000000100000002000000010000000100000002000000010000000100000003";
        bytes memory eight = abi.encodePacked(I32, uint8(8), dimensions);
        bytes memory four = abi.encodePacked(I32, uint8(4), hex"00000002000000010000000100000003");
        bytes memory strides = abi.encodePacked(int64(0), int64(0), int64(6), int64(0), int64(0), int64(3));
        bytes memory attributes = abi.encodePacked(strides, int64(0), int64(0), int64(1));
        bytes memory strided = B.instruction(Opcode.STRIDED, B.list(B.shape(I32, 12)), eight, attributes);
        bytes memory sum = B.instruction(Opcode.ADD, B.list(eight, four), eight, "");
        bytes memory numbers;
        for (uint8 k; k < 12; ++k) {
            numbers = abi.encodePacked(numbers, k, bytes3(0));
        }
        bytes memory sixty = hex"0a000000140000001e00000028000000320000003c000000";
        OperandChunk[] memory both = B.chunks(B.list(numbers, sixty));
        for (uint64 k; k < 12; ++k) {
            assertEq(arbiter.element(strided, k, B.chunk(0, 0, numbers)), k);
            assertEq(arbiter.element(sum, k, both), k + 10 * (k % 6 + 1));
        }
    }

    function test_element_stridedFlip_succeeds() public view {
        bytes memory attributes = abi.encodePacked(int64(1999), int64(-1));
        bytes memory ins =
            B.instruction(Opcode.STRIDED, B.list(B.shape(U8, 2000)), B.shape(U8, 2000), attributes);
        // Element 5 is x[1994], in the second and shorter chunk.
        assertEq(arbiter.element(ins, 5, B.chunk(0, 1, B.counting(976))), (1994 - 1024) % 256);
    }

    function test_element_stridedBeforeTheOperand_reverts() public {
        bytes memory attributes = abi.encodePacked(int64(0), int64(-1));
        bytes memory ins = B.instruction(Opcode.STRIDED, B.list(B.shape(U8, 4)), B.shape(U8, 4), attributes);
        vm.expectRevert(abi.encodeWithSelector(ArbiterMovement.StridedOutside.selector, -1));
        arbiter.element(ins, 1, B.chunk(0, 0, B.counting(4)));
    }

    function test_element_stridedBehindTheOperand_reverts() public {
        bytes memory attributes = abi.encodePacked(int64(3), int64(1));
        bytes memory ins = B.instruction(Opcode.STRIDED, B.list(B.shape(U8, 4)), B.shape(U8, 4), attributes);
        vm.expectRevert(abi.encodeWithSelector(Chunks.OperandOutside.selector, 0, 4));
        arbiter.element(ins, 1, B.chunk(0, 0, B.counting(4)));
    }

    function test_element_concatMiddleAxis_succeeds() public view {
        // [2, 1, 2] and [2, 2, 2] along axis 1: [2, 3, 2].
        bytes[] memory types = B.list(B.shape(U8, 2, 1, 2), B.shape(U8, 2, 2, 2));
        bytes memory ins = B.instruction(Opcode.CONCAT, types, B.shape(U8, 2, 3, 2), hex"01");
        OperandChunk[] memory x = B.chunks(B.list(hex"00010203", hex"1011121314151617"));
        bytes memory expected = hex"000110111213020314151617";
        for (uint64 k; k < 12; ++k) {
            assertEq(arbiter.element(ins, k, x), uint8(expected[k]));
        }
    }

    function test_element_padBothSides_succeeds() public view {
        // [1, 2] placed at (1, 1) of [3, 4], 0xee around.
        bytes memory attributes = abi.encodePacked(uint32(1), uint32(1), hex"ee");
        bytes memory ins = B.instruction(Opcode.PAD, B.list(B.shape(U8, 1, 2)), B.shape(U8, 3, 4), attributes);
        bytes memory expected = hex"eeeeeeeeee0102eeeeeeeeee";
        for (uint64 k; k < 12; ++k) {
            assertEq(arbiter.element(ins, k, B.chunk(0, 0, hex"0102")), uint8(expected[k]));
        }
    }

    function test_element_gatherRows_succeeds() public view {
        // Rows 2, -1, 3, 0 of [3, 2]: the middle two are out of range.
        bytes[] memory types = B.list(B.shape(U8, 3, 2), B.shape(I32, 4));
        bytes memory ins = B.instruction(Opcode.GATHER, types, B.shape(U8, 4, 2), "");
        OperandChunk[] memory x = B.chunks(B.list(hex"101112131415", hex"02000000ffffffff0300000000000000"));
        bytes memory expected = hex"1415000000001011";
        for (uint64 k; k < 8; ++k) {
            assertEq(arbiter.element(ins, k, x), uint8(expected[k]));
        }
    }

    function test_element_gatherOutsideNeedsNoTable_succeeds() public view {
        bytes[] memory types = B.list(B.shape(F32, 3, 2), B.shape(I32, 1));
        bytes memory ins = B.instruction(Opcode.GATHER, types, B.shape(F32, 1, 2), "");
        assertEq(arbiter.element(ins, 1, B.chunk(1, 0, hex"00000080")), 0);
    }

    function test_element_constantIsCanonical_succeeds() public view {
        bytes memory ins = B.instruction(Opcode.CONSTANT, B.list(), B.shape(F32, 7), hex"0100c0ff");
        assertEq(arbiter.element(ins, 6, B.chunks(B.list())), 0x7fc00000);
    }

    // ------------------------------------------------------------------ operands

    function test_element_broadcast_succeeds() public view {
        // [2, 1] + [3] gives [2, 3].
        bytes[] memory types = B.list(B.shape(I32, 2, 1), B.shape(I32, 3));
        bytes memory ins = B.instruction(Opcode.ADD, types, B.shape(I32, 2, 3), "");
        OperandChunk[] memory x = B.chunks(B.list(hex"0a00000014000000", hex"010000000200000003000000"));
        uint8[6] memory expected = [11, 12, 13, 21, 22, 23];
        for (uint64 k; k < 6; ++k) {
            assertEq(arbiter.element(ins, k, x), expected[k]);
        }
    }

    function test_element_selectReadsTheTakenOperandOnly_succeeds() public view {
        bytes[] memory types = B.list(B.shape(BOOL), B.shape(F32), B.shape(F32));
        bytes memory ins = B.instruction(Opcode.SELECT, types, B.shape(F32), "");
        // A condition byte of 7 reads as true; a signalling NaN is made canonical.
        assertEq(arbiter.element(ins, 0, B.chunks(B.list(hex"07", hex"010080ff"))), 0x7fc00000);
    }

    function test_element_chunkInAnyOrder_succeeds() public view {
        bytes[] memory types = B.list(B.shape(I32), B.shape(I32));
        bytes memory ins = B.instruction(Opcode.SUB, types, B.shape(I32), "");
        OperandChunk[] memory x = B.chunks(B.list(hex"02000000", hex"05000000"));
        (x[0], x[1]) = (x[1], x[0]);
        assertEq(arbiter.element(ins, 0, x), 0xfffffffd);
    }

    // ------------------------------------------------------------------ splits

    function test_blocks_byRowLength_succeeds() public view {
        assertEq(arbiter.blocks(_sum(1)), 1);
        assertEq(arbiter.blocks(_sum(128)), 1);
        assertEq(arbiter.blocks(_sum(384)), 3);
        bytes memory ins = B.instruction(Opcode.NEG, B.list(B.shape(F32, 4096)), B.shape(F32, 4096), "");
        assertEq(arbiter.blocks(ins), 1);
    }

    function test_blocks_rowUnaligned_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(ArbiterReductions.RowUnaligned.selector, 24));
        arbiter.blocks(_sum(3));
    }

    function test_element_longRow_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IArbiter.SplitNeeded.selector, 3));
        arbiter.element(_sum(384), 0, B.chunks(B.list()));
    }

    function test_blockResult_ofTheThirdBlock_succeeds() public view {
        // Row 1 of [2, 384] starts at chunk 3.
        OperandChunk[] memory x = B.chunk(0, 5, B.repeated(hex"0200000000000000", 128));
        assertEq(arbiter.blockResult(_sum(384), 1, 2, x), 256);
    }

    function test_blockResult_behindTheRow_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(ArbiterReductions.BlockOutside.selector, 3, 3));
        arbiter.blockResult(_sum(384), 0, 3, B.chunks(B.list()));
    }

    function test_blockResult_notAReduction_reverts() public {
        bytes memory ins = B.instruction(Opcode.NEG, B.list(B.shape(F32, 1)), B.shape(F32, 1), "");
        vm.expectRevert(abi.encodeWithSelector(IArbiter.NotAPrimitive.selector, Opcode.NEG));
        arbiter.blockResult(ins, 0, 0, B.chunks(B.list()));
    }

    function test_blockResult_dotOfBatch_succeeds() public view {
        // x [2, 2, 8], y [2, 3, 8] to [2, 2, 3]: element (1, 0, 2) is x row 2 by y row 5.
        bytes[] memory types = B.list(B.shape(I32, 2, 2, 8), B.shape(I32, 2, 3, 8));
        bytes memory ins = B.instruction(Opcode.DOT, types, B.shape(I64, 2, 2, 3), "");
        bytes memory x = bytes.concat(new bytes(64), B.repeated(hex"02000000", 8), new bytes(32));
        bytes memory y = bytes.concat(new bytes(160), B.repeated(hex"fdffffff", 8));
        assertEq(int64(arbiter.blockResult(ins, 8, 0, B.chunks(B.list(x, y)))), -48);
        assertEq(int64(arbiter.element(ins, 8, B.chunks(B.list(x, y)))), -48);
        assertEq(arbiter.element(ins, 7, B.chunks(B.list(x, y))), 0);
    }

    function test_blockResult_argmaxCountsTheWholeRow_succeeds() public view {
        bytes memory ins = B.instruction(Opcode.ARGMAX, B.list(B.shape(F32, 1, 512)), B.shape(I32, 1, 1), "");
        bytes memory second = bytes.concat(new bytes(40), hex"0000803f", new bytes(980));
        assertEq(arbiter.blockResult(ins, 0, 1, B.chunk(0, 1, second)), (0x3f800000 << 32) | 266);
        assertEq(arbiter.finish(Opcode.ARGMAX, (0x3f800000 << 32) | 266), 266);
    }

    function test_blockResult_prefixSumStopsAtItsElement_succeeds() public view {
        // x [2, 384] of twos: element 200 of row 1 is in its second block, chunk 4; the third block adds
        // nothing and needs no chunk.
        bytes memory t = B.shape(I64, 2, 384);
        bytes memory ins = B.instruction(Opcode.PREFIX_SUM, B.list(t), t, "");
        bytes memory twos = B.repeated(hex"0200000000000000", 128);
        assertEq(arbiter.blockResult(ins, 384 + 200, 0, B.chunk(0, 3, twos)), 256);
        assertEq(arbiter.blockResult(ins, 384 + 200, 1, B.chunk(0, 4, twos)), 2 * 73);
        assertEq(arbiter.blockResult(ins, 384 + 200, 2, B.chunks(B.list())), 0);
        assertEq(_fold(Opcode.PREFIX_SUM, 256, type(uint64).max), 255);
    }

    function test_blockResult_scatterSumTakesHalfAChunkOfIndices_succeeds() public view {
        // index [384], x [2, 384] to [2, 3]. Element (1, 2), block 2: chunk 5 of x, and chunk 1 of the index,
        // which is half a chunk long.
        bytes memory ins = B.instruction(
            Opcode.SCATTER_SUM,
            B.list(B.shape(I32, 384), B.shape(I64, 2, 384)),
            B.shape(I64, 2, 3),
            abi.encodePacked(uint32(3))
        );
        bytes memory index = bytes.concat(
            hex"02000000",
            B.repeated(hex"01000000", 100),
            hex"02000000",
            B.repeated(hex"ffffffff", 25),
            hex"02000000"
        );
        OperandChunk[] memory given = new OperandChunk[](2);
        given[0] = OperandChunk(0, 1, index);
        given[1] = OperandChunk(1, 5, B.repeated(hex"feffffffffffffff", 128));
        assertEq(int64(arbiter.blockResult(ins, 5, 2, given)), -6);
        assertEq(int64(arbiter.blockResult(ins, 4, 2, given)), -200);
        assertEq(arbiter.blockResult(ins, 3, 2, given), 0);
        assertEq(_fold(Opcode.SCATTER_SUM, type(uint64).max, 3), 2);
    }

    function test_fold_everyReduction_succeeds() public view {
        assertEq(_fold(Opcode.SUM, type(uint64).max, 3), 2);
        assertEq(_fold(Opcode.DOT, 1, type(uint64).max), 0);
        assertEq(_fold(Opcode.EXPONENT, 0xffffffa1, 3), 3); // -95 and 3
        assertEq(_fold(Opcode.EXPONENT, 32767, 0xffffffff), 32767);
        assertEq(_fold(Opcode.MAX, 0x80000000, 0x80000000), 0);
        assertEq(_fold(Opcode.MAX, 0x7f800000, 0x7fc00000), 0x7fc00000);
        uint64 minusZero = (0x80000000 << 32) | 1;
        assertEq(_fold(Opcode.ARGMAX, minusZero, 256), minusZero);
        assertEq(_fold(Opcode.ARGMAX, minusZero, (0x3f800000 << 32) | 256), (0x3f800000 << 32) | 256);
    }

    function testFuzz_fold_isAssociative_succeeds(uint64[3] calldata w, uint8 choice) public view {
        uint16 opcode = [Opcode.EXPONENT, Opcode.DOT, Opcode.SUM, Opcode.MAX, Opcode.ARGMAX][choice % 5];
        uint64 left = _fold(opcode, _fold(opcode, w[0], w[1]), w[2]);
        assertEq(left, _fold(opcode, w[0], _fold(opcode, w[1], w[2])));
    }

    function test_fold_nothing_reverts() public {
        vm.expectRevert(ArbiterReductions.NoBlocks.selector);
        arbiter.fold(Opcode.SUM, new uint64[](0));
    }

    function test_fold_notAReduction_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IArbiter.NotAPrimitive.selector, Opcode.ADD));
        arbiter.fold(Opcode.ADD, new uint64[](1));
    }

    // ------------------------------------------------------------------ ill-formed proofs

    function test_element_chunkMissing_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Chunks.ChunkMissing.selector, 0, 1));
        arbiter.element(_neg(300), 299, B.chunk(0, 0, new bytes(1024)));
    }

    function test_element_chunkTooShort_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Chunks.ChunkLength.selector, 0, 1, 176, 175));
        arbiter.element(_neg(300), 299, B.chunk(0, 1, new bytes(175)));
    }

    function test_element_behindTheResult_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(IArbiter.ElementOutside.selector, 300, 300));
        arbiter.element(_neg(300), 300, B.chunks(B.list()));
    }

    function test_element_operandMissing_reverts() public {
        bytes memory ins = B.instruction(Opcode.ADD, B.list(B.shape(F32)), B.shape(F32), "");
        vm.expectRevert(abi.encodeWithSelector(Chunks.OperandMissing.selector, 1));
        arbiter.element(ins, 0, B.chunk(0, 0, new bytes(4)));
    }

    function test_element_noPrimitive_reverts() public {
        uint16[9] memory opcodes = [uint16(0), 0x0001, 0x0005, 0x0105, 0x020d, 0x0407, 0x0706, 0x0802, 0xffff];
        for (uint256 k; k < opcodes.length; ++k) {
            bytes memory ins = B.instruction(opcodes[k], B.list(B.shape(F32)), B.shape(F32), "");
            vm.expectRevert(abi.encodeWithSelector(IArbiter.NotAPrimitive.selector, opcodes[k]));
            arbiter.element(ins, 0, B.chunk(0, 0, new bytes(4)));
        }
    }

    function test_element_wrongOperandType_reverts() public {
        _expectCodeUnsupported(Opcode.DIV, I32);
        _expectCodeUnsupported(Opcode.SQRT, I32);
        _expectCodeUnsupported(Opcode.ADD, BOOL);
        _expectCodeUnsupported(Opcode.XOR, F32);
        _expectCodeUnsupported(Opcode.SHL, BOOL);
        _expectCodeUnsupported(Opcode.MULHI, I64);
    }

    function test_element_castUndefined_reverts() public {
        bytes memory ins = B.instruction(Opcode.CAST, B.list(B.shape(F32)), B.shape(I64), "");
        vm.expectRevert(abi.encodeWithSelector(ArbiterElements.CastUndefined.selector, F32, I64));
        arbiter.element(ins, 0, B.chunk(0, 0, new bytes(4)));
    }

    function test_element_severalResults_reverts() public {
        bytes memory ins =
            abi.encodePacked(Opcode.NEG, uint32(0), hex"00", hex"02", B.shape(F32), B.shape(F32));
        vm.expectRevert(abi.encodeWithSelector(IArbiter.OneResultExpected.selector, 2));
        arbiter.element(ins, 0, B.chunks(B.list()));
    }

    function test_element_typeOutOfBounds_reverts() public {
        _expectTypeRefused(hex"0600", 6, 0, 0); // no such code
        _expectTypeRefused(abi.encodePacked(hex"0009", new bytes(36)), 0, 9, 0);
        _expectTypeRefused(hex"000100000000", 0, 1, 0);
        _expectTypeRefused(hex"000180000000", 0, 1, 1 << 33);
        _expectTypeRefused(hex"00020010000000100000", 0, 2, 1 << 42);
    }

    function test_element_everyTruncation_reverts() public {
        bytes memory attributes = abi.encodePacked(int64(0), int64(1));
        bytes memory ins = B.instruction(Opcode.STRIDED, B.list(B.shape(U8, 4)), B.shape(U8, 4), attributes);
        for (uint256 length; length < ins.length; ++length) {
            bytes memory short = new bytes(length);
            for (uint256 k; k < length; ++k) {
                short[k] = ins[k];
            }
            vm.expectPartialRevert(BigEndian.BytesTruncated.selector);
            arbiter.element(short, 0, B.chunk(0, 0, B.counting(4)));
        }
    }

    // ------------------------------------------------------------------ helpers

    function _sum(uint32 length) private pure returns (bytes memory) {
        return B.instruction(Opcode.SUM, B.list(B.shape(I64, 2, length)), B.shape(I64, 2, 1), "");
    }

    function _neg(uint32 length) private pure returns (bytes memory) {
        return B.instruction(Opcode.NEG, B.list(B.shape(F32, length)), B.shape(F32, length), "");
    }

    function _fold(uint16 opcode, uint64 a, uint64 b) private view returns (uint64) {
        uint64[] memory words = new uint64[](2);
        (words[0], words[1]) = (a, b);
        return arbiter.fold(opcode, words);
    }

    function _expectCodeUnsupported(uint16 opcode, uint8 code) private {
        bytes memory ins = B.instruction(opcode, B.list(B.shape(code), B.shape(code)), B.shape(code), "");
        uint256 size = code == I64 ? 8 : code == BOOL ? 1 : 4;
        vm.expectRevert(abi.encodeWithSelector(ArbiterElements.CodeUnsupported.selector, opcode, code));
        arbiter.element(ins, 0, B.chunks(B.list(new bytes(size), new bytes(size))));
    }

    function _expectTypeRefused(bytes memory encoded, uint8 code, uint256 rank, uint256 size) private {
        bytes memory ins = B.instruction(Opcode.NEG, B.list(encoded), B.shape(F32), "");
        vm.expectRevert(abi.encodeWithSelector(Instructions.TypeOutOfBounds.selector, code, rank, size));
        arbiter.element(ins, 0, B.chunks(B.list()));
    }
}
