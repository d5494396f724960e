// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IJuries} from "../../src/interfaces/IJuries.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {SaltedTree} from "../looks/SaltedTree.sol";
import {Claiming} from "./Claiming.sol";

/// @title Replays tests/vectors/walks.json through Juries: a walk selects exactly the chunk of a tensor that
/// it names.
contract WalksTest is Claiming {
    uint256[] private counts;
    uint256[] private walks;
    uint256[] private named;
    uint256[] private turns;
    uint256[] private depths;

    function setUp() public override {
        super.setUp();
        string memory json = vm.readFile("tests/vectors/walks.json");
        counts = vm.parseJsonUintArray(json, ".chunks");
        walks = vm.parseJsonUintArray(json, ".walk");
        named = vm.parseJsonUintArray(json, ".chunk");
        turns = vm.parseJsonUintArray(json, ".turns");
        depths = vm.parseJsonUintArray(json, ".depth");
    }

    /// @dev Every leaf is where the file says, in the trees that the contract tests use.
    function test_placeOf_everyVector_succeeds() public view {
        for (uint256 k; k < counts.length; ++k) {
            (uint32 turned, uint8 depth) = SaltedTree.placeOf(counts[k], named[k]);
            assertEq(turned, turns[k]);
            assertEq(depth, depths[k]);
        }
    }

    /// @dev Every chunk of tensors with up to nine chunks; for more, the last four walks of the file: all
    /// left, all right, and two others.
    function test_open_vectors_succeeds() public {
        // Without a gas limit: all rows are one test.
        vm.pauseGasMetering();
        uint256 fresh = vm.snapshotState();
        uint256 voted;
        for (uint256 k; k < counts.length; ++k) {
            if (k == 0 || counts[k] != counts[k - 1]) {
                vm.revertToState(fresh);
                this.vote(counts[k]);
                voted = vm.snapshotState();
            }
            if (counts[k] > 9 && k + 4 < counts.length && counts[k + 4] == counts[k]) continue;
            this.open(k);
            vm.revertToState(voted);
        }
    }

    /// @dev A jury votes yes on a state whose first tensor has that many chunks. A separate call, so that its
    /// memory is freed.
    function vote(uint256 count) external {
        (chunks, jurors) = (count, 3);
        _voted(0, 3, 0);
    }

    /// @dev Objects with the walk of row k, and opens the chunk that it names. A separate call, as above.
    function open(uint256 k) external {
        _object(0, uint32(walks[k]));
        if (chunks > 1 && chunks < 6) _expectOnly(k);
        bytes32 digest = _digest(FIRST, 0);
        _openWith(FIRST, digest, _opening(FIRST, 0, 0, named[k]));
        assertEq(juries.claimOf(task).opened, 1);
    }

    /// @dev A neighbour of the chunk that row k names is refused.
    function _expectOnly(uint256 k) private {
        bytes32 digest = _digest(FIRST, 0);
        IJuries.Opening memory other = _opening(FIRST, 0, 0, (named[k] + 1) % chunks);
        bytes32 secret = _secret(FIRST);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        juries.open(task, FIRST, secret, digest, other);
    }
}
