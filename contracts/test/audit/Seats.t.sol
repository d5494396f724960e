// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Seats} from "../../src/libraries/Seats.sol";
import {Test} from "forge-std/Test.sol";

/// @title Any order of comings and goings: at every version each holder has exactly its slots, later ones change nothing.
contract SeatsTest is Test {
    using Seats for Seats.Table;

    uint256 private constant MOVES = 40;

    Seats.Table private table;
    /// @dev The model: slots of each holder, 0 once it left.
    mapping(uint64 holder => uint256) private slotsOf;
    uint64 private newest;

    /// forge-config: default.fuzz.runs = 64
    function testFuzz_holderAt_earlierVersion_succeeds(uint256 seed, uint256 cut) public {
        cut = bound(cut, 1, MOVES);
        _move(seed, 0, cut);
        (uint64 version, uint32[8] memory lengths) = (table.version, table.lengths);
        uint256[] memory due = new uint256[](MOVES + 1);
        uint256 total;
        for (uint64 holder = 1; holder <= newest; ++holder) {
            due[holder] = slotsOf[holder];
            total += due[holder];
        }
        assertEq(Seats.total(lengths), total);
        _move(seed, cut, MOVES);
        uint256[] memory found = new uint256[](MOVES + 1);
        for (uint256 slot; slot < total; ++slot) {
            ++found[table.holderAt(version, lengths, slot)];
        }
        assertEq(found, due);
    }

    /// @dev Slots are numbered from the largest seats to the smallest; the last one moves into a gap.
    function test_holderAt_numbering_succeeds() public {
        table.take(1, 3);
        table.take(2, 2);
        table.take(3, 1);
        _assertHolders([1, 1, 2, 2, 1, 3]);
        table.vacate(1, 3);
        table.take(4, 3);
        _assertHolders([2, 2, 4, 4, 3, 4]);
    }

    function _assertHolders(uint8[6] memory due) private view {
        uint32[8] memory lengths = table.lengths;
        for (uint256 slot; slot < 6; ++slot) {
            assertEq(table.holderAt(table.version, lengths, slot), due[slot]);
        }
    }

    /// @dev Three comings to two goings; who goes is any holder that has not.
    function _move(uint256 seed, uint256 from, uint256 to) private {
        for (uint256 i = from; i < to; ++i) {
            uint256 word = uint256(keccak256(abi.encode(seed, i)));
            uint64 holder = newest == 0 ? 0 : uint64(word >> 16) % newest + 1;
            if (word % 5 < 2 && slotsOf[holder] != 0) {
                table.vacate(holder, slotsOf[holder]);
                slotsOf[holder] = 0;
            } else {
                slotsOf[++newest] = uint8(word >> 8) % 255 + 1;
                table.take(newest, slotsOf[newest]);
            }
        }
    }
}
