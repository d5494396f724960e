// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {DrawWords} from "../../src/libraries/DrawWords.sol";
import {Picks} from "../../src/libraries/Picks.sol";
import {Test} from "forge-std/Test.sol";

/// @title The slots that a draw of looks picks, compared with the rule written out: audit.md section 2.
contract PicksTest is Test {
    using DrawWords for DrawWords.Stream;

    /// @dev tests/vectors/draws.json has the picks of another implementation.
    function test_among_vectors_succeeds() public view {
        string memory json = vm.readFile("tests/vectors/draws.json");
        bytes32[] memory seeds = vm.parseJsonBytes32Array(json, ".picks.seed");
        uint256[] memory candidates = vm.parseJsonUintArray(json, ".picks.candidates");
        uint256[] memory chances = vm.parseJsonUintArray(json, ".picks.look_chance");
        uint256[] memory room = vm.parseJsonUintArray(json, ".picks.room");
        uint256[] memory due = vm.parseJsonUintArray(json, ".picks.picked");
        assertEq(seeds.length, 30);
        uint256 some;
        for (uint256 k; k < seeds.length; ++k) {
            DrawWords.Stream memory stream = DrawWords.start(seeds[k]);
            (uint256 picked,) = Picks.among(stream, candidates[k], chances[k], room[k]);
            assertEq(picked, due[k]);
            if (picked != 0) ++some;
        }
        assertGt(some, 10);
    }

    /// forge-config: default.fuzz.runs = 1000
    function testFuzz_among_equalsTheRule_succeeds(
        bytes32 seed,
        uint32 candidates,
        uint256 chance,
        uint256 most
    ) public pure {
        chance = bound(chance, 0, 10_000);
        most = bound(most, 0, 33);
        DrawWords.Stream memory stream = DrawWords.start(seed);
        (uint256 picked, uint256 count) = Picks.among(stream, candidates, chance, most);
        DrawWords.Stream memory plain = DrawWords.start(seed);
        uint256 due;
        uint256 sum;
        for (uint256 slot; slot < 32; ++slot) {
            bool candidate = (candidates & (1 << slot)) != 0;
            if (!candidate || sum == most) continue;
            uint256 number = plain.below(10_000);
            if (number < chance) {
                due += 1 << slot;
                ++sum;
            }
        }
        assertEq(picked, due);
        assertEq(count, sum);
        // Accounts are drawn from the words that follow.
        assertEq(stream.next(), plain.next());
    }

    function testFuzz_among_onlyCandidates_succeeds(bytes32 seed, uint32 candidates, uint256 chance)
        public
        pure
    {
        chance = bound(chance, 1, 10_000);
        (uint256 picked, uint256 count) = Picks.among(DrawWords.start(seed), candidates, chance, 32);
        assertEq(picked & ~uint256(candidates), 0);
        for (; picked != 0; picked &= picked - 1) {
            --count;
        }
        assertEq(count, 0);
    }

    function testFuzz_among_certain_picksAll_succeeds(bytes32 seed, uint32 candidates) public pure {
        (uint256 picked,) = Picks.among(DrawWords.start(seed), candidates, 10_000, 32);
        assertEq(picked, candidates);
    }

    /// @dev Picks the lowest candidates: those above the limit have no chance.
    function testFuzz_among_mostAreReached_succeeds(bytes32 seed, uint256 most) public pure {
        most = bound(most, 0, 32);
        (uint256 picked, uint256 count) = Picks.among(DrawWords.start(seed), type(uint32).max, 10_000, most);
        assertEq(picked, (1 << most) - 1);
        assertEq(count, most);
    }

    /// @dev Every chance has its stated probability: the count among 1,600 candidates is within five standard
    /// deviations.
    function test_among_everyChance_succeeds() public pure {
        uint256[8] memory chances = [uint256(1), 10, 100, 500, 2_500, 5_000, 9_000, 9_999];
        for (uint256 k; k < chances.length; ++k) {
            uint256 sum;
            for (uint256 n; n < 50; ++n) {
                bytes32 seed = keccak256(abi.encode(k, n));
                (, uint256 count) = Picks.among(DrawWords.start(seed), type(uint32).max, chances[k], 32);
                sum += count;
            }
            uint256 due = 1_600 * chances[k] / 10_000;
            uint256 apart = sum > due ? sum - due : due - sum;
            uint256 variance = 1_600 * chances[k] * (10_000 - chances[k]) / 1e8;
            assertLe(apart * apart, 25 * (variance + 1));
        }
    }

    function testFuzz_among_noChance_succeeds(bytes32 seed, uint32 candidates) public pure {
        (uint256 picked, uint256 count) = Picks.among(DrawWords.start(seed), candidates, 0, 32);
        assertEq(picked + count, 0);
    }
}
