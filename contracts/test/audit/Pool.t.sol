// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {DrawWords} from "../../src/libraries/DrawWords.sol";
import {Pool} from "../../src/libraries/Pool.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Test} from "forge-std/Test.sol";

/// @title Any sequence of joining and leaving: at every version each holder has exactly its slots, and later
/// changes do not affect it.
contract PoolTest is Test {
    using DrawWords for DrawWords.Stream;
    using Pool for Pool.Table;

    uint256 private constant MOVES = 40;
    /// @dev Number of levels that the random moves use; all of their slots are looked up.
    uint256 private constant LEVELS = 6;

    Pool.Table private table;
    /// @dev The model: 1 + level of each holder, 0 once it left.
    mapping(uint64 holder => uint256) private levelOf;
    uint64 private newest;

    /// @dev Every slot is equally likely: over one word for each slot, every holder is found as often as it
    /// has slots.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_pick_earlierVersion_succeeds(uint256 seed, uint256 cut) public {
        cut = bound(cut, 1, MOVES);
        _move(seed, 0, cut);
        (uint64 version, uint16[16] memory lengths) = (table.version, table.lengths);
        uint256[] memory due = new uint256[](MOVES + 1);
        uint256 total;
        for (uint64 holder = 1; holder <= newest; ++holder) {
            if (levelOf[holder] == 0) continue;
            due[holder] = 1 << levelOf[holder] - 1;
            total += due[holder];
        }
        _move(seed, cut, MOVES);
        Pool.Choice memory choice = Pool.choose(version, lengths, 1, 0);
        assertEq(choice.slots, total);
        uint256[] memory found = new uint256[](MOVES + 1);
        for (uint256 slot; slot < total; ++slot) {
            ++found[_holderOf(choice, slot)];
        }
        assertEq(found, due);
    }

    /// @dev Slots are numbered from the highest level down, by position; the last holder moves into a gap.
    function test_pick_numbering_succeeds() public {
        table.take(1, 1);
        table.take(2, 1);
        table.take(3, 0);
        _assertHolders([1, 1, 2, 2, 3], 0);
        table.vacate(1, 1);
        table.take(4, 1);
        _assertHolders([2, 2, 4, 4, 3], 0);
    }

    /// @dev One place, four holders one after the other: each version has the holder of its time.
    function test_pick_everyTenure_succeeds() public {
        uint64[4] memory versions;
        for (uint64 holder = 1; holder <= 4; ++holder) {
            if (holder > 1) table.vacate(holder - 1, 0);
            table.take(holder, 0);
            versions[holder - 1] = table.version;
        }
        uint16[16] memory lengths = table.lengths;
        for (uint64 holder = 1; holder <= 4; ++holder) {
            assertEq(_holderOf(Pool.choose(versions[holder - 1], lengths, 1, 0), 0), holder);
        }
    }

    /// @dev Levels whose stake is below the lock are not numbered at all.
    function test_choose_coveringLevels_succeeds() public {
        table.take(1, 2);
        table.take(2, 1);
        table.take(3, 0);
        assertEq(Pool.choose(table.version, table.lengths, 50, 50).slots, 7);
        assertEq(Pool.choose(table.version, table.lengths, 50, 51).slots, 6);
        assertEq(Pool.choose(table.version, table.lengths, 50, 100).slots, 6);
        assertEq(Pool.choose(table.version, table.lengths, 50, 101).slots, 4);
        assertEq(Pool.choose(table.version, table.lengths, 50, 201).slots, 0);
    }

    function test_choose_everyLevelFull_succeeds() public pure {
        uint16[16] memory lengths;
        for (uint256 level; level < 16; ++level) {
            lengths[level] = type(uint16).max;
        }
        assertEq(Pool.choose(0, lengths, 1, 0).slots, uint256(type(uint16).max) ** 2);
    }

    function test_take_levelFull_reverts() public {
        table.lengths[3] = type(uint16).max - 1;
        this.take(1, 3);
        vm.expectRevert(abi.encodeWithSelector(Refusals.LevelFull.selector, 3, type(uint16).max));
        this.take(2, 3);
    }

    /// @dev Finding the holder of a place that changed hands a thousand times takes logarithmically many
    /// steps. A draw makes at most 256 tries: 256 x 38,000 plus its other costs are below 2^24. A separate
    /// transaction, so storage is cold.
    /// forge-config: default.isolate = true
    function test_gas_pick_longPast_succeeds() public {
        table.take(1, 0);
        table.take(2, 0);
        (uint64 version, uint16[16] memory lengths) = (table.version, table.lengths);
        for (uint64 holder = 3; holder < 1003; ++holder) {
            table.vacate(holder - 1, 0);
            table.take(holder, 0);
        }
        Pool.Choice memory choice = Pool.choose(version, lengths, 1, 0);
        assertEq(this.holderOf(choice, 1), 2);
        assertLt(vm.lastCallGas().gasTotalUsed, 21_000 + 38_000);
    }

    function take(uint64 holder, uint256 level) external {
        table.take(holder, level);
    }

    function holderOf(Pool.Choice memory choice, uint256 slot) external view returns (uint64) {
        return _holderOf(choice, slot);
    }

    function _assertHolders(uint8[5] memory due, uint256 least) private view {
        Pool.Choice memory choice = Pool.choose(table.version, table.lengths, 1, least);
        for (uint256 slot; slot < 5; ++slot) {
            assertEq(_holderOf(choice, slot), due[slot]);
        }
    }

    /// @dev The holder of a slot, found by a stream whose next word is the slot's number.
    function _holderOf(Pool.Choice memory choice, uint256 slot) private view returns (uint64) {
        DrawWords.Stream memory stream;
        stream.taken = 1;
        stream.block_[1] = uint32(slot);
        return table.pick(choice, stream);
    }

    /// @dev Moves number `from` to `to` - 1. In two moves of five a random holder leaves, unless it has left
    /// already; in all others a new one joins.
    function _move(uint256 seed, uint256 from, uint256 to) private {
        for (uint256 i = from; i < to; ++i) {
            uint256 word = uint256(keccak256(abi.encode(seed, i)));
            uint64 holder = newest == 0 ? 0 : uint64(word >> 16) % newest + 1;
            if (word % 5 < 2 && levelOf[holder] != 0) {
                table.vacate(holder, levelOf[holder] - 1);
                levelOf[holder] = 0;
            } else {
                uint256 level = uint8(word >> 8) % LEVELS;
                levelOf[++newest] = level + 1;
                table.take(newest, level);
            }
        }
    }
}
