// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {TreeHarness} from "../harness/TreeHarness.sol";
import {Test} from "forge-std/Test.sol";

/// @title Rfc9162 compared with the published Certificate Transparency vectors, and its errors. Trees of many
/// sizes are replayed in ../vectors/Trees.t.sol.
contract Rfc9162Test is Test {
    TreeHarness private trees;

    function setUp() public {
        trees = new TreeHarness();
    }

    /// @dev The eight leaves and tree heads of the certificate-transparency reference tests
    /// (merkle_tree_test.cc).
    function test_treeHead_publishedVectors_succeeds() public view {
        bytes32[8] memory heads = [
            bytes32(0x6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d),
            0xfac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125,
            0xaeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77,
            0xd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7,
            0x4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4,
            0x76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef,
            0xddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c,
            0x5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328
        ];
        bytes32[] memory leaves = _publishedLeaves();
        for (uint256 n = 1; n <= 8; ++n) {
            assertEq(trees.treeHead(_first(leaves, n)), heads[n - 1]);
        }
    }

    function test_leafHash32_equalsLeafHash_succeeds() public view {
        bytes32 value = keccak256("value");
        assertEq(trees.leafHash32(value), trees.leafHash(abi.encode(value)));
        assertEq(trees.leafHash32(value), sha256(abi.encodePacked(uint8(0), value)));
    }

    function testFuzz_leafHash_equalsSha256_succeeds(bytes calldata data) public view {
        assertEq(trees.leafHash(data), sha256(bytes.concat(hex"00", data)));
    }

    function testFuzz_nodeHash_equalsSha256_succeeds(bytes32 left, bytes32 right) public view {
        assertEq(trees.nodeHash(left, right), sha256(bytes.concat(hex"01", left, right)));
    }

    /// @dev At every gas limit a hash is either right or the call reverts.
    function testFuzz_leafHash_tooLittleGas_reverts(uint256 gasLimit) public view {
        bytes memory data = new bytes(1024);
        bytes memory message = abi.encodeCall(trees.leafHash, (data));
        (bool done, bytes memory digest) = address(trees).staticcall{gas: bound(gasLimit, 100, 6000)}(message);
        if (done) assertEq(abi.decode(digest, (bytes32)), sha256(bytes.concat(hex"00", data)));
    }

    function test_leafHash_fewGasUnits_reverts() public view {
        bytes memory message = abi.encodeCall(trees.leafHash, (new bytes(1024)));
        (bool done,) = address(trees).staticcall{gas: 1200}(message);
        assertFalse(done);
    }

    // ------------------------------------------------------------------ nodes

    function test_rootFromPath_innerNodeOfSeven_succeeds() public view {
        bytes32[] memory leaves = _publishedLeaves();
        bytes32[] memory path = new bytes32[](2);
        // Node over leaves 4, 5 of 7: sibling leaf 6, then the node over leaves 0 to 3.
        path[0] = leaves[6];
        path[1] = trees.treeHead(_first(leaves, 4));
        bytes32 node = trees.nodeHash(leaves[4], leaves[5]);
        assertEq(trees.rootFromPath(7, 4, 2, node, path), trees.treeHead(_first(leaves, 7)));
    }

    function test_rootFromPath_wholeTree_succeeds() public view {
        assertEq(trees.rootFromPath(7, 0, 7, bytes32("root"), new bytes32[](0)), bytes32("root"));
    }

    function test_rootFromPath_greatestTree_succeeds() public view {
        uint64 last = type(uint64).max - 1;
        trees.rootFromPath(type(uint64).max, last, 1, bytes32("leaf"), new bytes32[](63));
        trees.rootFromPath(type(uint64).max, 0, 1, bytes32("leaf"), new bytes32[](64));
    }

    function test_rootFromPath_pathTooLong_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 3, 4));
        trees.rootFromPath(7, 0, 1, bytes32(0), new bytes32[](4));
    }

    function test_rootFromPath_pathTooShort_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 2, 1));
        trees.rootFromPath(7, 6, 1, bytes32(0), new bytes32[](1));
    }

    function test_rootFromPath_notANode_reverts() public {
        _expectNotANode(7, 1, 2); // straddles two pairs
        _expectNotANode(7, 3, 2); // straddles the split
        _expectNotANode(7, 0, 3); // no node has these three leaves
        _expectNotANode(7, 6, 2); // behind the end
        _expectNotANode(7, 7, 1);
        _expectNotANode(5, type(uint64).max, 1);
    }

    function test_rootFromPath_emptyNode_reverts() public {
        vm.expectRevert(Rfc9162.EmptyTree.selector);
        trees.rootFromPath(7, 3, 0, bytes32(0), new bytes32[](0));
        vm.expectRevert(Rfc9162.EmptyTree.selector);
        trees.rootFromPath(0, 0, 1, bytes32(0), new bytes32[](0));
    }

    // ------------------------------------------------------------------ consistency

    function test_verifyConsistency_equalSizes_succeeds() public view {
        trees.verifyConsistency(5, 5, bytes32("root"), bytes32("root"), new bytes32[](0));
    }

    function test_verifyConsistency_equalSizesOtherRoot_reverts() public {
        vm.expectRevert(
            abi.encodeWithSelector(Rfc9162.InconsistentRoot.selector, 5, bytes32("a"), bytes32("b"))
        );
        trees.verifyConsistency(5, 5, bytes32("a"), bytes32("b"), new bytes32[](0));
    }

    function test_verifyConsistency_sizesOutOfOrder_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.SizesOutOfOrder.selector, 6, 5));
        trees.verifyConsistency(6, 5, bytes32(0), bytes32(0), new bytes32[](0));
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.SizesOutOfOrder.selector, 0, 5));
        trees.verifyConsistency(0, 5, bytes32(0), bytes32(0), new bytes32[](0));
    }

    function test_verifyConsistency_wrongLength_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 1, 0));
        trees.verifyConsistency(4, 7, bytes32(0), bytes32(0), new bytes32[](0));
    }

    // ------------------------------------------------------------------ descendants

    function testFuzz_foldDescendants_equalsTreeHead_succeeds(uint8 size) public view {
        // With at most 16 leaves, all are within four levels.
        uint256 n = bound(size, 1, 16);
        bytes32[] memory leaves = new bytes32[](n);
        for (uint256 k; k < n; ++k) {
            leaves[k] = keccak256(abi.encode(k));
        }
        assertEq(trees.foldDescendants(uint64(n), 4, leaves), trees.treeHead(leaves));
    }

    function testFuzz_descendantCount_isAtMostSixteen_succeeds(uint64 size) public pure {
        uint256 count = Rfc9162.descendantCount(uint64(bound(size, 1, type(uint64).max)), 4);
        assertLe(count, 16);
    }

    function test_foldDescendants_wrongCount_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 16, 15));
        trees.foldDescendants(32, 4, new bytes32[](15));
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 9, 16));
        trees.foldDescendants(17, 4, new bytes32[](16));
    }

    // ------------------------------------------------------------------ helpers

    function _expectNotANode(uint64 treeSize, uint64 lo, uint64 size) private {
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.NotANode.selector, treeSize, lo, size));
        trees.rootFromPath(treeSize, lo, size, bytes32(0), new bytes32[](3));
    }

    function _publishedLeaves() private view returns (bytes32[] memory leaves) {
        bytes[8] memory data = [
            bytes(""),
            hex"00",
            hex"10",
            hex"2021",
            hex"3031",
            hex"40414243",
            hex"5051525354555657",
            hex"606162636465666768696a6b6c6d6e6f"
        ];
        leaves = new bytes32[](8);
        for (uint256 k; k < 8; ++k) {
            leaves[k] = trees.leafHash(data[k]);
        }
    }

    function _first(bytes32[] memory leaves, uint256 n) private pure returns (bytes32[] memory part) {
        part = new bytes32[](n);
        for (uint256 k; k < n; ++k) {
            part[k] = leaves[k];
        }
    }
}
