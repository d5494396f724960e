// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {DrawWords} from "./DrawWords.sol";
import {Refusals} from "./Refusals.sol";

/// @title Who can be drawn, by level, at every version of the past: audit.md section 2.
/// @notice The registrations of a level lie in an array without gaps: one that leaves is replaced by the last one.
/// Each place records its holders, and since when. So a draw looks up the holders of an earlier version; holders that
/// left before it, and changes after it, have no effect.
library Pool {
    using DrawWords for DrawWords.Stream;

    /// @notice A holder of level k has 2^k slots, so the slots of 16 full levels are below 2^32.
    uint256 internal constant LEVELS = 16;
    uint256 internal constant MAX_LENGTH = type(uint16).max;

    /// @notice The holders of a place, each from a version on. Two of the past in a slot.
    struct Tenure {
        uint64 holder;
        uint64 since;
    }

    /// @notice `lengths` are the places of each level now; `positions` is where a holder is in its level; `past` is who held a
    /// place before its holder now.
    struct Table {
        uint64 version;
        uint16[16] lengths;
        mapping(uint64 holder => uint16) positions;
        mapping(uint256 level => mapping(uint256 position => Tenure)) places;
        mapping(uint256 level => mapping(uint256 position => Tenure[])) past;
    }

    /// @notice What a draw chooses from: `slots` slots of levels up to `highest`, as they were at a version.
    struct Choice {
        uint64 version;
        uint16[16] lengths;
        uint256 highest;
        uint32 slots;
    }

    /// @notice Gives a place to a holder that has none.
    function take(Table storage table, uint64 holder, uint256 level) internal {
        uint16 position = table.lengths[level];
        if (position == MAX_LENGTH) revert Refusals.LevelFull(level, MAX_LENGTH);
        table.lengths[level] = position + 1;
        _seat(table, holder, level, position);
    }

    /// @notice Takes a holder's place away; the last holder of the level moves into the gap.
    function vacate(Table storage table, uint64 holder, uint256 level) internal {
        uint16 position = table.positions[holder];
        uint16 last = --table.lengths[level];
        if (position == last) ++table.version;
        else _seat(table, table.places[level][last].holder, level, position);
    }

    /// @notice The slots of the levels whose stake is at least `least`.
    /// @param lengths The lengths at that version.
    function choose(uint64 version, uint16[16] memory lengths, uint256 unit, uint256 least)
        internal
        pure
        returns (Choice memory choice)
    {
        (choice.version, choice.lengths) = (version, lengths);
        // unchecked: the sum is below 2^32, and a unit is at most 2^79.
        unchecked {
            for (uint256 level; level < LEVELS; ++level) {
                uint32 length = lengths[level];
                if (length == 0 || unit << level < least) continue;
                choice.slots += length << uint32(level);
                choice.highest = level;
            }
        }
    }

    /// @notice The holder of a uniform one of the slots: they are numbered from the highest level down, by position.
    function pick(Table storage table, Choice memory choice, DrawWords.Stream memory stream)
        internal
        view
        returns (uint64)
    {
        uint256 slot = stream.below(choice.slots);
        uint256 level = choice.highest;
        // unchecked: slot is below the slots of this level and those under it.
        unchecked {
            while (true) {
                uint256 slots = uint256(choice.lengths[level]) << level;
                if (slot < slots) break;
                slot -= slots;
                --level;
            }
        }
        uint256 position = slot >> level;
        Tenure memory found = table.places[level][position];
        if (found.since <= choice.version) return found.holder;
        // The last entry that is not younger than the version; the first one is not.
        Tenure[] storage past = table.past[level][position];
        (uint256 low, uint256 high) = (0, past.length - 1);
        while (low < high) {
            uint256 middle = (low + high + 1) / 2;
            if (past[middle].since <= choice.version) low = middle;
            else high = middle - 1;
        }
        return past[low].holder;
    }

    /// @dev Gives a place that is empty, or whose holder leaves, to a holder.
    function _seat(Table storage table, uint64 holder, uint256 level, uint16 position) private {
        Tenure storage place = table.places[level][position];
        if (place.since != 0) table.past[level][position].push(place);
        (place.holder, place.since) = (holder, ++table.version);
        table.positions[holder] = position;
    }
}
