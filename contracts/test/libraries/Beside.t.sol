// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Proofs} from "../../src/libraries/Proofs.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Test} from "forge-std/Test.sol";

/// @title An external function for the library, which needs calldata.
contract BesideHarness {
    function beside(uint64 size, uint64 anchor, Leaf calldata proved, uint64 index, Leaf calldata leaf)
        external
        view
    {
        Proofs.requireBeside(size, anchor, proved, index, leaf);
    }
}

/// @title A leaf proved next to another leaf of its tree: every pair in every tree of up to 20 leaves.
contract BesideTest is Test {
    uint256 private constant MOST = 20;

    BesideHarness private harness;
    bytes32[] private values;

    function setUp() public {
        harness = new BesideHarness();
        for (uint256 k; k < MOST; ++k) {
            values.push(keccak256(abi.encode(k)));
        }
    }

    function test_requireBeside_everyPair_succeeds() public view {
        for (uint64 size = 1; size <= MOST; ++size) {
            bytes32[] memory hashes = _hashes(size);
            for (uint64 anchor; anchor < size; ++anchor) {
                Leaf memory proved = Leaf(values[anchor], LeafTree.path(hashes, anchor));
                for (uint64 index; index < size; ++index) {
                    Leaf memory leaf = Leaf(values[index], LeafTree.beside(hashes, anchor, index));
                    harness.beside(size, anchor, proved, index, leaf);
                }
            }
        }
    }

    function test_requireBeside_anotherValue_reverts() public {
        bytes32[] memory hashes = _hashes(13);
        for (uint64 anchor; anchor < 13; ++anchor) {
            Leaf memory proved = Leaf(values[anchor], LeafTree.path(hashes, anchor));
            for (uint64 index; index < 13; ++index) {
                Leaf memory leaf = Leaf(values[(index + 1) % 13], LeafTree.beside(hashes, anchor, index));
                vm.expectPartialRevert(Refusals.WrongRoot.selector);
                harness.beside(13, anchor, proved, index, leaf);
            }
        }
    }

    function test_requireBeside_wholePath_reverts() public {
        bytes32[] memory hashes = _hashes(13);
        Leaf memory proved = Leaf(values[9], LeafTree.path(hashes, 9));
        Leaf memory leaf = Leaf(values[8], LeafTree.path(hashes, 8));
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 0, leaf.path.length));
        harness.beside(13, 9, proved, 8, leaf);
    }

    function test_requireBeside_outsideOfTheTree_reverts() public {
        bytes32[] memory hashes = _hashes(13);
        Leaf memory proved = Leaf(values[12], LeafTree.path(hashes, 12));
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.NotANode.selector, 13, 13, 1));
        harness.beside(13, 12, proved, 13, Leaf(values[13], new bytes32[](0)));
    }

    function _hashes(uint256 size) private view returns (bytes32[] memory) {
        bytes32[] memory chosen = new bytes32[](size);
        for (uint256 k; k < size; ++k) {
            chosen[k] = values[k];
        }
        return LeafTree.leaves(chosen);
    }
}
