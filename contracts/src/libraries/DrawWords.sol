// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Philox} from "./Philox.sol";

/// @title The random words of a draw: audit.md section 2.
library DrawWords {
    /// @dev The key, the number of words taken, and the four words of the current Philox block.
    struct Stream {
        uint32 key0;
        uint32 key1;
        uint32 taken;
        uint32[4] block_;
    }

    /// @notice The stream of a seed. Its key is the lowest 32-bit word of the seed and the next one.
    function start(bytes32 seed) internal pure returns (Stream memory stream) {
        stream.key0 = uint32(uint256(seed));
        stream.key1 = uint32(uint256(seed) >> 32);
    }

    /// @notice The next word: word n mod 4 of the block with counter (n div 4, 0, 0, 0).
    function next(Stream memory stream) internal pure returns (uint32) {
        uint32 n = stream.taken++;
        if (n % 4 == 0) stream.block_ = Philox.generate([n / 4, 0, 0, 0], stream.key0, stream.key1);
        return stream.block_[n % 4];
    }

    /// @notice A uniform number below m > 0, by rejection. Each word is accepted with a probability above one
    /// half.
    function below(Stream memory stream, uint32 m) internal pure returns (uint32) {
        uint256 limit = (1 << 32) - ((1 << 32) % uint256(m));
        uint32 word = next(stream);
        while (word >= limit) word = next(stream);
        return word % m;
    }

    /// @notice q distinct numbers of 1 ... k, every set equally likely (Floyd's algorithm: it takes q uniform
    /// numbers and never retries). All of them if q is not below k.
    function distinct(Stream memory stream, uint32 k, uint256 q)
        internal
        pure
        returns (uint32[] memory chosen)
    {
        if (q > k) q = k;
        chosen = new uint32[](q);
        for (uint256 i; i < q; ++i) {
            uint32 top = uint32(k - q + 1 + i);
            uint32 number = below(stream, top) + 1;
            for (uint256 j; j < i; ++j) {
                if (chosen[j] == number) {
                    number = top;
                    break;
                }
            }
            chosen[i] = number;
        }
    }
}
