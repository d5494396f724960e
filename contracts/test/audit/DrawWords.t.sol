// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {DrawWords} from "../../src/libraries/DrawWords.sol";
import {Test} from "forge-std/Test.sol";

/// @title The random numbers of draws; replays tests/vectors/draws.json.
contract DrawWordsTest is Test {
    using DrawWords for DrawWords.Stream;

    function test_numbers_vectors_succeeds() public view {
        string memory json = vm.readFile("tests/vectors/draws.json");
        bytes32[] memory seeds = vm.parseJsonBytes32Array(json, ".seed");
        uint256[] memory slots = vm.parseJsonUintArray(json, ".slots");
        uint256[] memory segments = vm.parseJsonUintArray(json, ".segments");
        uint256[] memory seats = vm.parseJsonUintArray(json, ".seats");
        uint256[] memory q = vm.parseJsonUintArray(json, ".segments_per_verifier");
        bytes[] memory tried = vm.parseJsonBytesArray(json, ".slots_tried");
        bytes[] memory chosen = vm.parseJsonBytesArray(json, ".seat_segments");
        assertEq(seeds.length, 28);
        for (uint256 i; i < seeds.length; ++i) {
            assertEq(_slots(seeds[i], uint32(slots[i]), seats[i]), tried[i]);
            assertEq(_segments(seeds[i], uint32(segments[i]), seats[i], q[i]), chosen[i]);
        }
    }

    function testFuzz_below_inRange_succeeds(bytes32 seed, uint32 m) public pure {
        vm.assume(m != 0);
        DrawWords.Stream memory stream = DrawWords.start(seed);
        for (uint256 i; i < 8; ++i) {
            assertLt(stream.below(m), m);
        }
    }

    function testFuzz_distinct_isASet_succeeds(bytes32 seed, uint32 k, uint8 q) public pure {
        k = uint32(bound(k, 1, 200));
        uint32[] memory chosen = DrawWords.start(seed).distinct(k, q);
        assertEq(chosen.length, q < k ? q : k);
        bool[] memory seen = new bool[](k + 1);
        for (uint256 i; i < chosen.length; ++i) {
            assertGt(chosen[i], 0);
            assertLe(chosen[i], k);
            assertFalse(seen[chosen[i]]);
            seen[chosen[i]] = true;
        }
    }

    function _slots(bytes32 seed, uint32 slots, uint256 count) private pure returns (bytes memory numbers) {
        DrawWords.Stream memory stream = DrawWords.start(seed);
        for (uint256 i; i < count; ++i) {
            numbers = bytes.concat(numbers, bytes4(stream.below(slots)));
        }
    }

    function _segments(bytes32 seed, uint32 segments, uint256 seats, uint256 q)
        private
        pure
        returns (bytes memory numbers)
    {
        for (uint256 seat; seat < seats; ++seat) {
            uint32[] memory chosen = DrawWords.start(keccak256(abi.encode(seed, seat))).distinct(segments, q);
            for (uint256 j; j < chosen.length; ++j) {
                numbers = bytes.concat(numbers, bytes4(chosen[j]));
            }
        }
    }
}
