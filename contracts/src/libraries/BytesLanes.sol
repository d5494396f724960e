// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Little-endian numbers inside calldata: the canonical bytes of arithmetic.md section 1.
/// @notice Single numbers by element index, and whole 32-byte words arranged so that their first number is in
/// the highest bits.
/// @dev The EVM is big-endian. Swapping the bytes of all lanes of a word at once costs about as much as
/// swapping one.
library BytesLanes {
    /// @notice Number `index` of a packed array is beyond its `length` bytes.
    error PlaceOutside(uint256 index, uint256 width, uint256 length);

    uint256 private constant ODD_BYTES = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant ODD_PAIRS = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;
    uint256 private constant ODD_QUADS = 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff;

    /// @notice Byte `index` of `data`.
    function u8At(bytes calldata data, uint256 index) internal pure returns (uint8) {
        if (index >= data.length) revert PlaceOutside(index, 1, data.length);
        return uint8(data[index]);
    }

    /// @notice 32-bit number `index` of the packed array `data`.
    function u32At(bytes calldata data, uint256 index) internal pure returns (uint32) {
        if (index >= data.length / 4) revert PlaceOutside(index, 4, data.length);
        return uint32(swap32(_load(data, index * 4)) >> 224);
    }

    /// @notice 64-bit number `index` of the packed array `data`.
    function u64At(bytes calldata data, uint256 index) internal pure returns (uint64) {
        if (index >= data.length / 8) revert PlaceOutside(index, 8, data.length);
        return uint64(swap64(_load(data, index * 8)) >> 192);
    }

    /// @notice The 32 bytes from `offset` on, with zeros after the end of `data`.
    function wordAt(bytes calldata data, uint256 offset) internal pure returns (uint256) {
        if (offset >= data.length) return 0;
        // unchecked: offset < length.
        unchecked {
            uint256 left = data.length - offset;
            return left >= 32 ? _load(data, offset) : _load(data, offset) & ~(type(uint256).max >> (8 * left));
        }
    }

    /// @notice The word with the four bytes of each of its eight lanes reversed; the first lane stays
    /// highest.
    function swap32(uint256 word) internal pure returns (uint256) {
        word = ((word >> 8) & ODD_BYTES) | ((word & ODD_BYTES) << 8);
        return ((word >> 16) & ODD_PAIRS) | ((word & ODD_PAIRS) << 16);
    }

    /// @notice The word with the eight bytes of each of its four lanes reversed; the first lane stays
    /// highest.
    function swap64(uint256 word) internal pure returns (uint256) {
        word = swap32(word);
        return ((word >> 32) & ODD_QUADS) | ((word & ODD_QUADS) << 32);
    }

    function _load(bytes calldata data, uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(add(data.offset, offset))
        }
    }
}
