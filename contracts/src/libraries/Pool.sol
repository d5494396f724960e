// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {DrawWords} from "./DrawWords.sol";
import {Refusals} from "./Refusals.sol";

/// @title The accounts that can be drawn, by level, at every past version: audit.md section 2.
/// @notice The registrations of a level form an array without gaps: the last one replaces one that leaves.
/// Each place records its holders and the version from which each held it. So a draw finds the holders at an
/// earlier version; changes after that version have no effect on it.
library Pool {
    using DrawWords for DrawWords.Stream;

    /// @notice A holder of level k has 2^k slots, so the slots of 16 full levels are below 2^32.
    uint256 internal constant LEVELS = 16;
    uint256 internal constant MAX_LENGTH = type(uint16).max;

    /// @notice A holder of a place, and the version from which it held it. Two entries of a list share a
    /// storage slot.
    struct Tenure {
        uint64 holder;
        uint64 since;
    }

    /// @notice `lengths` are the numbers of places of each level now; `positions` is where a holder is in its
    /// level; `past` are the earlier holders of a place.
    struct Table {
        uint64 version;
        uint16[16] lengths;
        mapping(uint64 holder => uint16) positions;
        mapping(uint256 level => mapping(uint256 position => Tenure)) places;
        mapping(uint256 level => mapping(uint256 position => Tenure[])) past;
    }

    /// @notice The slots that a draw chooses from: `slots` slots of levels up to `highest`, at a version.
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

    /// @notice The holder of a uniformly chosen slot. Slots are numbered from the highest level down, by
    /// position.
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
        // The last entry no newer than the version. The first entry always qualifies.
        Tenure[] storage past = table.past[level][position];
        (uint256 low, uint256 high) = (0, past.length - 1);
        while (low < high) {
            uint256 middle = (low + high + 1) / 2;
            if (past[middle].since <= choice.version) low = middle;
            else high = middle - 1;
        }
        return past[low].holder;
    }

    /// @dev Gives a holder a place that is empty or whose holder leaves.
    function _seat(Table storage table, uint64 holder, uint256 level, uint16 position) private {
        Tenure storage place = table.places[level][position];
        if (place.since != 0) table.past[level][position].push(place);
        (place.holder, place.since) = (holder, ++table.version);
        table.positions[holder] = position;
    }
}
