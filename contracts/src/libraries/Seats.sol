// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The slots of live registrations, without gaps, at every version of their past: encoding.md section 7.
/// @notice A registration of `count` slots takes one seat for each binary digit of the count; the seats of one size lie in
/// an array without gaps, for whoever leaves is replaced by the last one. Each seat keeps who sat in it since when. So
/// a draw looks up the slots of an earlier version, and neither those that left before it nor those that came or left
/// after it take any part.
library Seats {
    /// @notice Sizes 1, 2, 4 ... 128; with them a count is at most 255.
    uint256 internal constant SIZES = 8;
    uint256 internal constant MAX_COUNT = 255;

    /// @notice Who sits in a seat from a version on. One slot, 128 bits are free.
    struct Seat {
        uint64 holder;
        uint64 since;
    }

    /// @notice `lengths` are the seats of each size now; `positions` is where a holder sits, for each size that it has.
    struct Table {
        uint64 version;
        uint32[8] lengths;
        mapping(uint64 holder => uint32[8]) positions;
        mapping(uint256 size => mapping(uint256 position => Seat[])) seats;
    }

    /// @notice Seats a holder that has none.
    /// @param count Its slots, 1 to 255.
    function take(Table storage table, uint64 holder, uint256 count) internal {
        uint64 version = ++table.version;
        for (uint256 size; size < SIZES; ++size) {
            if (count >> size & 1 == 0) continue;
            uint32 position = table.lengths[size]++;
            table.positions[holder][size] = position;
            table.seats[size][position].push(Seat(holder, version));
        }
    }

    /// @notice Unseats a holder of so many slots; the last holder of each size moves into the gap.
    function vacate(Table storage table, uint64 holder, uint256 count) internal {
        uint64 version = ++table.version;
        for (uint256 size; size < SIZES; ++size) {
            if (count >> size & 1 == 0) continue;
            uint32 position = table.positions[holder][size];
            uint32 last = --table.lengths[size];
            if (position == last) continue;
            Seat[] storage past = table.seats[size][last];
            uint64 moved = past[past.length - 1].holder;
            table.positions[moved][size] = position;
            table.seats[size][position].push(Seat(moved, version));
        }
    }

    /// @notice The number of slots in seats of these lengths.
    function total(uint32[8] memory lengths) internal pure returns (uint256 slots) {
        for (uint256 size; size < SIZES; ++size) {
            slots += uint256(lengths[size]) << size;
        }
    }

    /// @notice Who held a slot at a version: slots are numbered from the largest seats to the smallest, by position.
    /// @param lengths The lengths at that version. @param slot Below their total.
    function holderAt(Table storage table, uint64 version, uint32[8] memory lengths, uint256 slot)
        internal
        view
        returns (uint64)
    {
        uint256 size = SIZES - 1;
        while (slot >= uint256(lengths[size]) << size) {
            slot -= uint256(lengths[size]) << size;
            --size;
        }
        Seat[] storage past = table.seats[size][slot >> size];
        // The last entry that is not younger than the version; the first one is not.
        (uint256 low, uint256 high) = (0, past.length - 1);
        while (low < high) {
            uint256 middle = (low + high + 1) / 2;
            if (past[middle].since <= version) low = middle;
            else high = middle - 1;
        }
        return past[low].holder;
    }
}
