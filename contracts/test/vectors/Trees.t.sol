// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TreeHarness} from "../harness/TreeHarness.sol";
import {Test} from "forge-std/Test.sol";

/// @title Replays tests/vectors/trees.json through Rfc9162: valid proofs hold; invalid ones revert or give
/// another root.
contract TreesVectorsTest is Test {
    TreeHarness private trees;
    string private json;

    function setUp() public {
        trees = new TreeHarness();
        json = vm.readFile("tests/vectors/trees.json");
    }

    function test_treeHead_everyVector_succeeds() public view {
        bytes32[] memory leaves = vm.parseJsonBytes32Array(json, ".leaves");
        bytes32[] memory roots = vm.parseJsonBytes32Array(json, ".roots");
        for (uint256 n = 1; n <= leaves.length; ++n) {
            bytes32[] memory hashes = new bytes32[](n);
            for (uint256 k; k < n; ++k) {
                hashes[k] = trees.leafHash32(leaves[k]);
            }
            assertEq(trees.treeHead(hashes), roots[n - 1]);
        }
    }

    function test_rootFromPath_everyVector_succeeds() public view {
        Paths memory good = _paths(".paths");
        for (uint256 k; k < good.root.length; ++k) {
            assertEq(_rootOf(good, k), good.root[k], vm.toString(k));
        }
    }

    function test_rootFromPath_everyDamagedVector_reverts() public view {
        Paths memory bad = _paths(".refused_paths");
        assertGt(bad.root.length, 100);
        for (uint256 k; k < bad.root.length; ++k) {
            try this.rootOf(bad, k) returns (bytes32 root) {
                assertNotEq(root, bad.root[k], vm.toString(k));
            } catch {}
        }
    }

    function test_verifyConsistency_everyVector_succeeds() public view {
        Consistencies memory good = _consistencies(".consistency");
        for (uint256 k; k < good.oldRoot.length; ++k) {
            this.verify(good, k);
        }
    }

    function test_verifyConsistency_everyDamagedVector_reverts() public view {
        Consistencies memory bad = _consistencies(".refused_consistency");
        assertGt(bad.oldRoot.length, 100);
        for (uint256 k; k < bad.oldRoot.length; ++k) {
            bool refused;
            try this.verify(bad, k) {}
            catch {
                refused = true;
            }
            assertTrue(refused, vm.toString(k));
        }
    }

    function test_foldDescendants_everyVector_succeeds() public view {
        uint256[] memory sizes = vm.parseJsonUintArray(json, ".descendants.size");
        bytes32[] memory nodes = vm.parseJsonBytes32Array(json, ".descendants.node");
        bytes[] memory children = vm.parseJsonBytesArray(json, ".descendants.children");
        for (uint256 k; k < sizes.length; ++k) {
            assertEq(trees.foldDescendants(uint64(sizes[k]), 4, _split(children[k])), nodes[k]);
        }
    }

    function test_leafHash_everyTensorVector_succeeds() public view {
        uint256[] memory lengths = vm.parseJsonUintArray(json, ".tensors.bytes");
        bytes32[] memory roots = vm.parseJsonBytes32Array(json, ".tensors.root");
        for (uint256 k; k < lengths.length; ++k) {
            bytes32[] memory hashes = new bytes32[]((lengths[k] + 1023) / 1024);
            for (uint256 c; c < hashes.length; ++c) {
                hashes[c] = trees.leafHash(_tensorBytes(1024 * c, lengths[k]));
            }
            assertEq(trees.treeHead(hashes), roots[k]);
        }
    }

    // ------------------------------------------------------------------ columns of the file

    struct Paths {
        uint256[] treeSize;
        uint256[] lo;
        uint256[] size;
        bytes32[] node;
        bytes[] path;
        bytes32[] root;
    }

    struct Consistencies {
        uint256[] oldSize;
        uint256[] newSize;
        bytes32[] oldRoot;
        bytes32[] newRoot;
        bytes[] proof;
    }

    /// @dev External, so that a revert can be caught.
    function rootOf(Paths memory p, uint256 k) external view returns (bytes32) {
        return _rootOf(p, k);
    }

    /// @dev External, so that a revert can be caught.
    function verify(Consistencies memory c, uint256 k) external view {
        trees.verifyConsistency(
            uint64(c.oldSize[k]), uint64(c.newSize[k]), c.oldRoot[k], c.newRoot[k], _split(c.proof[k])
        );
    }

    function _rootOf(Paths memory p, uint256 k) private view returns (bytes32) {
        bytes32[] memory path = _split(p.path[k]);
        return trees.rootFromPath(uint64(p.treeSize[k]), uint64(p.lo[k]), uint64(p.size[k]), p.node[k], path);
    }

    function _paths(string memory key) private view returns (Paths memory p) {
        p.treeSize = vm.parseJsonUintArray(json, string.concat(key, ".tree_size"));
        p.lo = vm.parseJsonUintArray(json, string.concat(key, ".lo"));
        p.size = vm.parseJsonUintArray(json, string.concat(key, ".size"));
        p.node = vm.parseJsonBytes32Array(json, string.concat(key, ".node"));
        p.path = vm.parseJsonBytesArray(json, string.concat(key, ".path"));
        p.root = vm.parseJsonBytes32Array(json, string.concat(key, ".root"));
    }

    function _consistencies(string memory key) private view returns (Consistencies memory c) {
        c.oldSize = vm.parseJsonUintArray(json, string.concat(key, ".old_size"));
        c.newSize = vm.parseJsonUintArray(json, string.concat(key, ".new_size"));
        c.oldRoot = vm.parseJsonBytes32Array(json, string.concat(key, ".old_root"));
        c.newRoot = vm.parseJsonBytes32Array(json, string.concat(key, ".new_root"));
        c.proof = vm.parseJsonBytesArray(json, string.concat(key, ".proof"));
    }

    /// @dev Splits a concatenation of hashes.
    function _split(bytes memory joined) private pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](joined.length / 32);
        for (uint256 k; k < hashes.length; ++k) {
            assembly ("memory-safe") {
                mstore(add(hashes, mul(32, add(k, 1))), mload(add(joined, mul(32, add(k, 1)))))
            }
        }
    }

    /// @dev Bytes `begin` to at most `begin + 1024` of the file's tensor of `length` bytes: byte i is 7 i + i
    /// / 256.
    function _tensorBytes(uint256 begin, uint256 length) private pure returns (bytes memory chunk) {
        chunk = new bytes(length - begin < 1024 ? length - begin : 1024);
        for (uint256 k; k < chunk.length; ++k) {
            chunk[k] = bytes1(uint8(7 * (begin + k) + (begin + k) / 256));
        }
    }
}
