// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
/// arithmetic.md section 7.
library Philox {
    uint256 private constant MULTIPLIER_0 = 0xD2511F53;
    uint256 private constant MULTIPLIER_1 = 0xCD9E8D57;
    uint256 private constant WEYL_0 = 0x9E3779B9; // golden ratio
    uint256 private constant WEYL_1 = 0xBB67AE85; // sqrt(3) - 1
    uint256 private constant ROUNDS = 10;

    /// @notice Element i of a `philox` tensor: word i % 4 of the block with counter (i / 4 low, i / 4 high,
    /// step, stream).
    function element(uint64 i, uint32 key0, uint32 key1, uint32 step, uint32 stream)
        internal
        pure
        returns (uint32)
    {
        uint64 group = i / 4;
        return generate([uint32(group), uint32(group >> 32), step, stream], key0, key1)[i % 4];
    }

    /// @notice The four output words for a counter of four words (word 0 first) and a key of two.
    function generate(uint32[4] memory counter, uint32 key0, uint32 key1)
        internal
        pure
        returns (uint32[4] memory)
    {
        (uint256 c0, uint256 c1, uint256 c2, uint256 c3) = (counter[0], counter[1], counter[2], counter[3]);
        (uint256 k0, uint256 k1) = (key0, key1);
        // unchecked: 32-bit products and sums in 256 bits; uint32() takes them modulo 2^32, as Philox does.
        unchecked {
            for (uint256 round; round < ROUNDS; ++round) {
                uint256 product0 = MULTIPLIER_0 * c0;
                uint256 product1 = MULTIPLIER_1 * c2;
                c0 = (product1 >> 32) ^ c1 ^ k0;
                c1 = uint32(product1);
                c2 = (product0 >> 32) ^ c3 ^ k1;
                c3 = uint32(product0);
                k0 = uint32(k0 + WEYL_0);
                k1 = uint32(k1 + WEYL_1);
            }
        }
        return [uint32(c0), uint32(c1), uint32(c2), uint32(c3)];
    }
}
