// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Big-endian numbers in calldata: the structure integers of encoding.md.
library BigEndian {
    /// @notice The data have only `length` bytes, but their contents require `needed`.
    error BytesTruncated(uint256 needed, uint256 length);

    /// @notice The number in the `size` bytes (1 to 32) from `offset` on.
    function read(bytes calldata data, uint256 offset, uint256 size) internal pure returns (uint256 value) {
        if (offset + size > data.length) revert BytesTruncated(offset + size, data.length);
        assembly ("memory-safe") {
            value := shr(sub(256, mul(8, size)), calldataload(add(data.offset, offset)))
        }
    }

    /// @notice The 32 bytes from `offset` on, without checking where `data` ends: see `requireBytes`.
    function word(bytes calldata data, uint256 offset) internal pure returns (uint256 value) {
        assembly ("memory-safe") {
            value := calldataload(add(data.offset, offset))
        }
    }

    /// @notice Refuses data of fewer than `needed` bytes.
    function requireBytes(bytes calldata data, uint256 needed) internal pure {
        if (needed > data.length) revert BytesTruncated(needed, data.length);
    }

    /// @notice The bytes from `offset` on.
    function from(bytes calldata data, uint256 offset) internal pure returns (bytes calldata) {
        if (offset > data.length) revert BytesTruncated(offset, data.length);
        return data[offset:];
    }

    function u8At(bytes calldata data, uint256 offset) internal pure returns (uint8) {
        return uint8(read(data, offset, 1));
    }

    function u32At(bytes calldata data, uint256 offset) internal pure returns (uint32) {
        return uint32(read(data, offset, 4));
    }

    function i64At(bytes calldata data, uint256 offset) internal pure returns (int64) {
        return int64(uint64(read(data, offset, 8)));
    }
}
