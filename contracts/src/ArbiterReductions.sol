// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Chunks} from "./libraries/Chunks.sol";
import {Fixed} from "./libraries/Fixed.sol";
import {Float32} from "./libraries/Float32.sol";
import {Instructions} from "./libraries/Instructions.sol";
import {Shapes} from "./libraries/Shapes.sol";
import {Instruction, Opcode, OperandChunk, TensorType} from "./types/Instruction.sol";

/// @title One block of a reduction, and folding blocks: encoding.md section 3, "Rows" and "Block results".
library ArbiterReductions {
    /// @notice A row of `rowBytes` bytes neither divides a chunk nor is a whole number of chunks.
    error RowUnaligned(uint256 rowBytes);
    /// @notice The row has `count` blocks; there is no block `blockIndex`.
    error BlockOutside(uint256 blockIndex, uint256 count);
    /// @notice Nothing to fold.
    error NoBlocks();

    /// @notice Whether the opcode names a reduction.
    function isReduction(uint16 opcode) internal pure returns (bool) {
        return opcode == Opcode.EXPONENT || (opcode >= Opcode.DOT && opcode <= Opcode.SCATTER_SUM)
            || opcode == Opcode.PREFIX_SUM;
    }

    /// @notice Number of blocks in each row of a reduction, taken from its last operand, whose elements are
    /// reduced.
    function blockCount(Instruction memory ins) internal pure returns (uint32) {
        uint256 operands = ins.operands.length;
        uint256 rowBytes = _rowBytes(Chunks.typeOf(ins, operands == 0 ? 0 : operands - 1));
        // A row has at most 2^40 bytes.
        if (rowBytes % Instructions.CHUNK_BYTES == 0) return uint32(rowBytes / Instructions.CHUNK_BYTES);
        if (Instructions.CHUNK_BYTES % rowBytes != 0) revert RowUnaligned(rowBytes);
        return 1;
    }

    /// @notice Result of one block, as a 64-bit word.
    function blockResult(
        Instruction memory ins,
        uint256 index,
        uint256 blockIndex,
        OperandChunk[] calldata chunks
    ) internal pure returns (uint64) {
        uint256 count = blockCount(ins);
        if (blockIndex >= count) revert BlockOutside(blockIndex, count);
        if (ins.opcode == Opcode.DOT) return _dot(ins, index, blockIndex, chunks);
        if (ins.opcode == Opcode.SCATTER_SUM) return _scatterSum(ins, index, blockIndex, chunks);
        if (ins.opcode == Opcode.PREFIX_SUM) return _prefixSum(ins, index, blockIndex, chunks);
        bytes calldata x = _block(ins, 0, index, blockIndex, chunks);
        if (ins.opcode == Opcode.SUM) return uint64(Fixed.sumBlock(x));
        if (ins.opcode == Opcode.EXPONENT) return uint32(Fixed.exponentBlock(x));
        if (ins.opcode == Opcode.MAX) return Fixed.maxBlock(x);
        (uint32 value, uint256 place) = Fixed.argmaxBlock(x);
        // unchecked: rows are shorter than 2^31 elements.
        unchecked {
            return uint64(value) << 32 | uint64(blockIndex * (Instructions.CHUNK_BYTES / 4) + place);
        }
    }

    /// @notice Folds the words of consecutive blocks into one word.
    function fold(uint16 opcode, uint64[] calldata words) internal pure returns (uint64 word) {
        if (words.length == 0) revert NoBlocks();
        word = words[0];
        for (uint256 k = 1; k < words.length; ++k) {
            word = _combine(opcode, word, words[k]);
        }
    }

    /// @dev Combines an earlier and a later word.
    function _combine(uint16 opcode, uint64 a, uint64 b) private pure returns (uint64) {
        if (opcode == Opcode.MAX) return Float32.max(uint32(a), uint32(b));
        if (opcode == Opcode.ARGMAX) return Fixed.displaces(uint32(b >> 32), uint32(a >> 32)) ? b : a;
        if (opcode == Opcode.EXPONENT) return int32(uint32(b)) > int32(uint32(a)) ? b : a;
        // unchecked: sums wrap.
        unchecked {
            return a + b;
        }
    }

    /// @dev out[..., m, n] = sum over k of x[..., m, k] * y[..., n, k].
    function _dot(Instruction memory ins, uint256 index, uint256 blockIndex, OperandChunk[] calldata chunks)
        private
        pure
        returns (uint64)
    {
        TensorType memory result = ins.results[0];
        if (result.rank < 2) revert Instructions.TypeOutOfBounds(result.code, result.rank, 0);
        // unchecked: dimensions are not 0, the index is below their product.
        unchecked {
            uint256 n = Shapes.dimension(result, result.rank - 1);
            uint256 m = Shapes.dimension(result, result.rank - 2);
            bytes calldata x = _block(ins, 0, index / n, blockIndex, chunks);
            bytes calldata y = _block(ins, 1, index / n / m * n + index % n, blockIndex, chunks);
            return uint64(Fixed.dotBlock(x, y));
        }
    }

    /// @dev out[..., r] = sum of x[..., k] over all k with index[k] = r. All rows of x share the one row of
    /// the index.
    function _scatterSum(
        Instruction memory ins,
        uint256 index,
        uint256 blockIndex,
        OperandChunk[] calldata chunks
    ) private pure returns (uint64) {
        uint256 rows = _lastDimension(ins.results[0]);
        bytes calldata x = _block(ins, 1, index / rows, blockIndex, chunks);
        // A block of x needs half as many bytes of indices, so two blocks share a chunk of the index.
        uint256 size = x.length / 2;
        uint256 place = blockIndex * size % Instructions.CHUNK_BYTES;
        uint256 chunk = blockIndex * size / Instructions.CHUNK_BYTES;
        bytes calldata indices = Chunks.find(Chunks.typeOf(ins, 0), 0, chunk, chunks)[place:place + size];
        return uint64(Fixed.scatterBlock(indices, x, uint32(index % rows)));
    }

    /// @dev out[..., j] = sum of x[..., k] over k = 0 ... j. A block after j is 0 and reads nothing.
    function _prefixSum(
        Instruction memory ins,
        uint256 index,
        uint256 blockIndex,
        OperandChunk[] calldata chunks
    ) private pure returns (uint64) {
        uint256 length = _lastDimension(ins.results[0]);
        uint256 end = (index % length + 1) * 8; // in bytes of the row
        uint256 begin = blockIndex * Instructions.CHUNK_BYTES;
        if (end <= begin) return 0;
        bytes calldata x = _block(ins, 0, index / length, blockIndex, chunks);
        return uint64(Fixed.sumBlock(end - begin < x.length ? x[:end - begin] : x));
    }

    /// @dev Bytes of block `blockIndex` of row `row` of an operand: a whole chunk, or a short row within a
    /// chunk.
    function _block(
        Instruction memory ins,
        uint256 operand,
        uint256 row,
        uint256 blockIndex,
        OperandChunk[] calldata chunks
    ) private pure returns (bytes calldata) {
        TensorType memory t = Chunks.typeOf(ins, operand);
        uint256 rowBytes = _rowBytes(t);
        uint256 size = rowBytes < Instructions.CHUNK_BYTES ? rowBytes : Instructions.CHUNK_BYTES;
        // unchecked: there are at most 2^40 rows and blocks, and a row has at most 2^40 bytes. A row that the
        // operand does not have lies in none of its chunks.
        unchecked {
            uint256 begin = row * rowBytes + blockIndex * size;
            uint256 place = begin % Instructions.CHUNK_BYTES;
            return Chunks.find(t, operand, begin / Instructions.CHUNK_BYTES, chunks)[place:place + size];
        }
    }

    function _rowBytes(TensorType memory t) private pure returns (uint256) {
        return _lastDimension(t) * Instructions.width(t.code);
    }

    function _lastDimension(TensorType memory t) private pure returns (uint256) {
        if (t.rank == 0) revert Instructions.TypeOutOfBounds(t.code, 0, 0);
        return Shapes.dimension(t, t.rank - 1);
    }
}
