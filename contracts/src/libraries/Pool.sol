// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {DrawWords} from "./DrawWords.sol";
import {Errors} from "./Errors.sol";

/// @title Who can be drawn, by level, at every version of the past: encoding.md section 7.
/// @notice The registrations of a level lie in an array without gaps, for whoever leaves is replaced by the last one. Each place
/// keeps who held it since when. So a draw looks up the holders of an earlier version, and neither those that left
/// before it nor those that came or left after it take any part.
library Pool {
    using DrawWords for DrawWords.Stream;

    /// @notice A holder of level k has 2^k slots, so the slots of 16 full levels are below 2^32.
    uint256 internal constant LEVELS = 16;
    uint256 internal constant MAX_LENGTH = type(uint16).max;

    /// @notice Who holds a place from a version on. Two entries in a slot.
    struct Tenure {
        uint64 holder;
        uint64 since;
    }

    /// @notice `lengths` are the places of each level now; `positions` is where a holder is in its level.
    struct Table {
        uint64 version;
        uint16[16] lengths;
        mapping(uint64 holder => uint16) positions;
        mapping(uint256 level => mapping(uint256 position => Tenure[])) places;
    }

    /// @notice Gives a place to a holder that has none.
    function take(Table storage table, uint64 holder, uint256 level) internal {
        uint16 position = table.lengths[level];
        if (position == MAX_LENGTH) revert Errors.LevelFull(level, MAX_LENGTH);
        table.lengths[level] = position + 1;
        table.positions[holder] = position;
        table.places[level][position].push(Tenure(holder, ++table.version));
    }

    /// @notice Takes a holder's place away; the last holder of the level moves into the gap.
    function vacate(Table storage table, uint64 holder, uint256 level) internal {
        uint64 version = ++table.version;
        uint16 position = table.positions[holder];
        uint16 last = --table.lengths[level];
        if (position == last) return;
        Tenure[] storage past = table.places[level][last];
        uint64 moved = past[past.length - 1].holder;
        table.positions[moved] = position;
        table.places[level][position].push(Tenure(moved, version));
    }

    /// @notice The lowest level whose stake is at least `least`; LEVELS if there is none.
    function covering(uint256 unit, uint256 least) internal pure returns (uint256 level) {
        while (level < LEVELS && unit << level < least) ++level;
    }

    /// @notice The number of slots in levels `lowest` and above.
    function slots(uint16[16] memory lengths, uint256 lowest) internal pure returns (uint32 total) {
        for (uint256 level = lowest; level < LEVELS; ++level) {
            total += uint32(lengths[level]) << uint32(level);
        }
    }

    /// @notice The holder of a uniform slot at a version, among `total` slots: they are numbered from the highest level down, by
    /// position.
    /// @param lengths The lengths at that version.
    function pick(
        Table storage table,
        uint64 version,
        uint16[16] memory lengths,
        uint32 total,
        DrawWords.Stream memory stream
    ) internal view returns (uint64) {
        uint256 slot = stream.below(total);
        uint256 level = LEVELS - 1;
        while (slot >= uint256(lengths[level]) << level) {
            slot -= uint256(lengths[level]) << level;
            --level;
        }
        Tenure[] storage past = table.places[level][slot >> level];
        // The last entry that is not younger than the version, mostly the newest; the first one is not younger.
        uint256 high = past.length - 1;
        Tenure memory found = past[high];
        uint256 low;
        while (found.since > version) {
            // Entry `high` is too young, entry `low` is not.
            uint256 middle = (low + high) / 2;
            Tenure memory tried = past[middle];
            if (tried.since > version) {
                high = middle;
            } else if (middle == low || middle + 1 == high) {
                found = tried;
            } else {
                low = middle;
            }
        }
        return found.holder;
    }
}
