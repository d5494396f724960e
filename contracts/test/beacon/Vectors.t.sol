// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {Signing} from "./Signing.sol";

/// @title Replays tests/vectors/beacon.json: evmnet's round 9337227, rounds for which Python made signatures
/// and hints, and maps of single field elements.
contract BeaconVectorsTest is Signing {
    string private json = vm.readFile("tests/vectors/beacon.json");

    function test_map_vectors_succeeds() public view {
        bytes32[] memory us = vm.parseJsonBytes32Array(json, ".maps.u");
        bytes[] memory points = vm.parseJsonBytesArray(json, ".maps.point");
        bytes[] memory hints = vm.parseJsonBytesArray(json, ".maps.hints");
        assertEq(us.length, 64);
        for (uint256 i; i < us.length; ++i) {
            uint256 u = uint256(us[i]);
            (uint256 x, uint256 y) = curve.map(u, abi.decode(hints[i], (MapHints)));
            assertEq(abi.encode(x, y), points[i]);
            assertEq(hints[i], abi.encode(_mapHints(u)));
        }
    }

    function test_word_vectors_succeeds() public {
        uint256[] memory rounds = vm.parseJsonUintArray(json, ".rounds.round");
        bytes[] memory keys = vm.parseJsonBytesArray(json, ".rounds.key");
        bytes[] memory points = vm.parseJsonBytesArray(json, ".rounds.point");
        bytes[] memory hints = vm.parseJsonBytesArray(json, ".rounds.hints");
        bytes[] memory signatures = vm.parseJsonBytesArray(json, ".rounds.signature");
        bytes32[] memory words = vm.parseJsonBytes32Array(json, ".rounds.word");
        assertEq(rounds.length, 13);
        assertEq(rounds[0], 9337227);
        for (uint256 i; i < rounds.length; ++i) {
            IBeacon beacon = _newBeacon(abi.decode(keys[i], (uint256[4])), GENESIS, PERIOD);
            uint64 round = uint64(rounds[i]);
            MapHints[2] memory given = abi.decode(hints[i], (MapHints[2]));
            (uint256 x, uint256 y) = curve.hash(_message(round), given);
            assertEq(abi.encode(x, y), points[i]);
            assertEq(beacon.word(round, signatures[i], given), words[i]);
        }
    }
}
