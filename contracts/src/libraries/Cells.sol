// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The holders of a task's seats, five seats per storage slot.
/// @notice A cell has 48 bits: the number of a registration (0 for an empty seat) and four flags. Cells 0 ...
/// 31 are seats. The look `slot` of a level is cell 32 level + slot. Jurors are numbered in the same way, as
/// level 5 (audit.md section 2).
library Cells {
    uint256 internal constant ATTESTED = 1 << 40;
    uint256 internal constant RELEASED = 1 << 41;
    uint256 internal constant CAUGHT = 1 << 42;
    /// @notice A juror voted yes; an attested juror without this flag voted no.
    uint256 internal constant YES = 1 << 43;
    /// @notice Levels of looks. Looks of the last level are not themselves looked at.
    uint256 internal constant LOOK_LEVELS = 4;
    /// @notice The level of jurors, after the four levels of looks.
    uint8 internal constant JURY = 5;
    /// @notice The cell of the first juror; lower cells are seats and looks.
    uint256 internal constant FIRST_JUROR = 160;
    /// @notice Number of cells of a task.
    uint256 internal constant COUNT = 192;
    uint256 private constant BITS = 48;
    uint256 private constant IN_WORD = 5;

    /// @notice Cells of a task, at most 192: seats, looks of four levels, and a jury.
    struct Table {
        uint256[39] words;
    }

    function get(Table storage table, uint256 seat) internal view returns (uint256) {
        return table.words[seat / IN_WORD] >> _shift(seat) & (1 << BITS) - 1;
    }

    function set(Table storage table, uint256 seat, uint256 cell) internal {
        uint256 word = seat / IN_WORD;
        uint256 mask = (1 << BITS) - 1 << _shift(seat);
        table.words[word] = table.words[word] & ~mask | cell << _shift(seat);
    }

    /// @notice The cell number of a seat (level 0), look or juror.
    function number(uint256 level, uint256 slot) internal pure returns (uint256) {
        return level << 5 | slot;
    }

    /// @notice Level and slot of a cell; for a seat, 0 and its number.
    function placeOf(uint256 cellNumber) internal pure returns (uint256 level, uint256 slot) {
        return (cellNumber >> 5, cellNumber & 31);
    }

    /// @notice The number of the registration in a cell.
    function holder(uint256 cell) internal pure returns (uint40) {
        return uint40(cell);
    }

    function _shift(uint256 seat) private pure returns (uint256) {
        return seat % IN_WORD * BITS;
    }
}
