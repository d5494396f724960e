// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Shares} from "../../src/libraries/Shares.sol";
import {Test} from "forge-std/Test.sol";

/// @title How stakes are divided; replays tests/vectors/economics.json.
contract SharesTest is Test {
    string private constant FILE = "tests/vectors/economics.json";

    function test_slash_vectors_succeeds() public view {
        string memory json = vm.readFile(FILE);
        uint256[] memory stakes = _column(json, ".slash.stake");
        uint256[] memory rewards = _column(json, ".slash.reward");
        uint256[] memory restitutions = _column(json, ".slash.restitution");
        uint256[] memory burned = _column(json, ".slash.burned");
        uint256[] memory rewarded = _column(json, ".slash.rewarded");
        uint256[] memory restored = _column(json, ".slash.restored");
        assertEq(stakes.length, 576);
        for (uint256 i; i < stakes.length; ++i) {
            (uint256 b, uint256 r, uint256 s, uint256 rest) =
                Shares.slash(stakes[i], rewards[i], restitutions[i]);
            assertEq(b, burned[i]);
            assertEq(r, rewarded[i]);
            assertEq(s, restored[i]);
            assertEq(rest, stakes[i] - burned[i] - rewarded[i] - restored[i]);
        }
    }

    function testFuzz_slash_addsUp_succeeds(uint256 stake, uint256 reward, uint256 restitution) public pure {
        (uint256 burned, uint256 rewarded, uint256 restored, uint256 rest) =
            Shares.slash(stake, reward, restitution);
        assertEq(burned + rewarded + restored + rest, stake);
        assertGe(burned, stake / 4);
        assertLe(rewarded, reward);
        assertLe(restored, restitution);
    }

    function _column(string memory json, string memory path) private pure returns (uint256[] memory) {
        return vm.parseJsonUintArray(json, path);
    }
}
