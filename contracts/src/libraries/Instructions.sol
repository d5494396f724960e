// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Instruction, TensorType, TypeCode} from "../types/Instruction.sol";
import {BigEndian} from "./BigEndian.sol";

/// @title Decoding instructions, and the geometry of their types: encoding.md sections 1 and 3.
/// @notice Not a full `check`: parties run that off-chain before they stake. This reads what a judgment
/// needs, and refuses bytes that end early or types that are out of bounds.
library Instructions {
    /// @notice Element code, rank, a dimension or the byte count of a type violates encoding.md section 1, or
    /// a reduction needs a higher rank.
    error TypeOutOfBounds(uint8 code, uint256 rank, uint256 byteCount);

    uint256 internal constant CHUNK_BYTES = 1024;
    uint256 internal constant MAX_RANK = 8;
    uint256 internal constant MAX_BYTES = 1 << 40;

    /// @notice Parts of an encoded instruction; `attributes` is the rest of the bytes.
    function decode(bytes calldata raw)
        internal
        pure
        returns (Instruction memory ins, bytes calldata attributes)
    {
        BigEndian.requireBytes(raw, 7);
        uint256 head = BigEndian.word(raw, 0);
        ins.opcode = uint16(head >> 240);
        ins.first = uint32(head >> 208);
        uint256 operands = uint8(head >> 200);
        uint256 offset = 7;
        ins.leaves = new uint32[](operands);
        ins.operands = _list(operands);
        // unchecked: `offset` grows by less than 2^16 for each of at most 510 parts.
        unchecked {
            for (uint256 k; k < operands; ++k) {
                ins.leaves[k] = uint32(BigEndian.read(raw, offset, 4));
                offset = _read(raw, offset + 4, ins.operands, k);
            }
            uint256 results = BigEndian.read(raw, offset, 1);
            ++offset;
            ins.results = _list(results);
            for (uint256 k; k < results; ++k) {
                offset = _read(raw, offset, ins.results, k);
            }
        }
        attributes = BigEndian.from(raw, offset);
    }

    /// @notice The opcode, without decoding the rest.
    function opcodeOf(bytes calldata raw) internal pure returns (uint16) {
        return uint16(BigEndian.read(raw, 0, 2));
    }

    // ------------------------------------------------------------------ geometry

    /// @notice Bytes of one element.
    function width(uint8 code) internal pure returns (uint256) {
        if (code == TypeCode.I64) return 8;
        return code == TypeCode.U8 || code == TypeCode.BOOL ? 1 : 4;
    }

    /// @notice Number of elements.
    function elementCount(TensorType memory t) internal pure returns (uint256) {
        return byteCount(t) / width(t.code);
    }

    /// @notice Number of canonical bytes.
    function byteCount(TensorType memory t) internal pure returns (uint256) {
        return t.size;
    }

    /// @notice Leaves of the tensor's tree.
    function chunkCount(TensorType memory t) internal pure returns (uint64) {
        // unchecked: at most 2^40 bytes.
        unchecked {
            return uint64((byteCount(t) + CHUNK_BYTES - 1) / CHUNK_BYTES);
        }
    }

    /// @notice Bytes of chunk `index`; 0 after the tensor's end.
    function chunkLength(TensorType memory t, uint256 index) internal pure returns (uint256) {
        uint256 end = byteCount(t);
        if (index >= chunkCount(t)) return 0;
        // unchecked: chunk `index` begins before `end`, which is at most 2^40.
        unchecked {
            uint256 rest = end - index * CHUNK_BYTES;
            return rest < CHUNK_BYTES ? rest : CHUNK_BYTES;
        }
    }

    /// @notice The chunk that holds element `index`, and the element's place within it.
    function locate(TensorType memory t, uint256 index) internal pure returns (uint64 chunk, uint256 place) {
        uint256 perChunk = CHUNK_BYTES / width(t.code);
        return (uint64(index / perChunk), index % perChunk);
    }

    // ------------------------------------------------------------------ reading

    /// @dev Allocates a list of `count` types. `new` would also allocate a zeroed type for each entry, which
    /// would be wasted because reading replaces it. The caller must set every entry.
    function _list(uint256 count) private pure returns (TensorType[] memory list) {
        assembly ("memory-safe") {
            list := mload(0x40)
            mstore(list, count)
            mstore(0x40, add(list, shl(5, add(count, 1))))
        }
    }

    /// @dev Reads the type at `offset` into entry k of the list; returns the offset after its bytes.
    function _read(bytes calldata raw, uint256 offset, TensorType[] memory list, uint256 k)
        private
        pure
        returns (uint256 next)
    {
        // Code, rank and the first seven dimensions are 30 bytes of one word; an eighth extends into the
        // next.
        uint256 word = BigEndian.word(raw, offset);
        uint8 code = uint8(word >> 248);
        uint256 rank = uint8(word >> 240);
        if (code > TypeCode.BOOL || rank > MAX_RANK) revert TypeOutOfBounds(code, rank, 0);
        uint256 size = width(code);
        uint256 dimensions;
        // unchecked: at most eight 32-bit factors, refused as soon as the product passes 2^40.
        unchecked {
            next = offset + 2 + 4 * rank;
            BigEndian.requireBytes(raw, next);
            dimensions = word << 16;
            if (rank == 8) dimensions |= BigEndian.word(raw, next - 4) >> 224;
            // Bits after the last dimension do not belong to this type; a shift by 256 clears all.
            dimensions &= ~(type(uint256).max >> (32 * rank));
            word = dimensions;
            for (uint256 axis; axis < rank; ++axis) {
                uint256 dimension = word >> 224;
                word <<= 32;
                size *= dimension;
                if (dimension == 0 || dimension >> 31 != 0 || size > MAX_BYTES) {
                    revert TypeOutOfBounds(code, rank, size);
                }
            }
        }
        // At most 2^40.
        list[k] = TensorType({code: code, rank: uint8(rank), size: uint64(size), dimensions: dimensions});
    }
}
