// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ILooks} from "../../src/interfaces/ILooks.sol";
import {Digests} from "../../src/libraries/Digests.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {DigestHarness} from "../harness/DigestHarness.sol";
import {TreeHarness} from "../harness/TreeHarness.sol";
import {Test} from "forge-std/Test.sol";

/// @title Replays tests/vectors/digests.json through Digests: salts, attestations, leaves, and openings up to
/// a digest.
contract DigestsVectorsTest is Test {
    DigestHarness private digests;
    TreeHarness private trees;
    string private json;
    bytes32 private salt;

    function setUp() public {
        digests = new DigestHarness();
        trees = new TreeHarness();
        json = vm.readFile("tests/vectors/digests.json");
        salt = vm.parseJsonBytes32(json, ".salt");
    }

    // ------------------------------------------------------------------ salts and attestations

    /// @dev On every chain whose id the test machine supports.
    function test_salt_everyVector_succeeds() public {
        uint256[] memory chains = vm.parseJsonUintArray(json, ".seats.chain");
        uint256[] memory tasks = vm.parseJsonUintArray(json, ".seats.task");
        uint256[] memory seats = vm.parseJsonUintArray(json, ".seats.seat");
        address[] memory boards = vm.parseJsonAddressArray(json, ".seats.board");
        address[] memory accounts = vm.parseJsonAddressArray(json, ".seats.account");
        bytes32[] memory seeds = vm.parseJsonBytes32Array(json, ".seats.seed");
        bytes32[] memory secrets = vm.parseJsonBytes32Array(json, ".seats.secret");
        bytes32[] memory salts = vm.parseJsonBytes32Array(json, ".seats.salt");
        uint256 tested;
        for (uint256 k; k < salts.length; ++k) {
            if (chains[k] > type(uint64).max) continue;
            ++tested;
            vm.chainId(chains[k]);
            TaskId task = TaskId.wrap(tasks[k]);
            assertEq(digests.salt(boards[k], task, seats[k], accounts[k], seeds[k], secrets[k]), salts[k]);
        }
        assertGe(tested, 3);
    }

    function test_saltHash_everyVector_succeeds() public view {
        bytes32[] memory salts = vm.parseJsonBytes32Array(json, ".seats.salt");
        bytes32[] memory hashes = vm.parseJsonBytes32Array(json, ".seats.salt_hash");
        for (uint256 k; k < salts.length; ++k) {
            assertEq(Digests.saltHash(salts[k]), hashes[k]);
        }
    }

    function test_attestation_everyVector_succeeds() public view {
        bytes32[] memory roots = vm.parseJsonBytes32Array(json, ".attestations.digest");
        bytes32[] memory hashes = vm.parseJsonBytes32Array(json, ".attestations.salt_hash");
        bytes32[] memory words = vm.parseJsonBytes32Array(json, ".attestations.word");
        for (uint256 k; k < words.length; ++k) {
            assertEq(Digests.attestation(roots[k], hashes[k]), words[k]);
        }
    }

    // ------------------------------------------------------------------ what looks keep

    /// @dev The revealed values are stored as one word.
    function test_revealed_everyVector_succeeds() public view {
        bytes32[] memory salts = vm.parseJsonBytes32Array(json, ".reveals.salt");
        bytes32[] memory roots = vm.parseJsonBytes32Array(json, ".reveals.segment_root");
        bytes32[] memory words = vm.parseJsonBytes32Array(json, ".reveals.word");
        assertGt(words.length, 0);
        for (uint256 k; k < words.length; ++k) {
            assertEq(keccak256(abi.encode(salts[k], roots[k])), words[k]);
        }
    }

    function test_accused_everyVector_succeeds() public view {
        uint256[] memory steps = vm.parseJsonUintArray(json, ".accusations.step");
        uint256[] memory tensors = vm.parseJsonUintArray(json, ".accusations.tensor");
        uint256[] memory turns = vm.parseJsonUintArray(json, ".accusations.turns");
        uint256[] memory depths = vm.parseJsonUintArray(json, ".accusations.depth");
        bytes32[] memory leaves = vm.parseJsonBytes32Array(json, ".accusations.leaf");
        bytes32[] memory roots = vm.parseJsonBytes32Array(json, ".accusations.segment_root");
        bytes32[] memory words = vm.parseJsonBytes32Array(json, ".accusations.word");
        assertGt(words.length, 0);
        for (uint256 k; k < words.length; ++k) {
            ILooks.Place memory place =
                ILooks.Place(uint32(steps[k]), uint32(tensors[k]), uint32(turns[k]), uint8(depths[k]));
            assertEq(keccak256(abi.encode(ILooks.Accusation(place, leaves[k], roots[k]))), words[k]);
        }
    }

    // ------------------------------------------------------------------ leaves

    function test_leaf_everyVector_succeeds() public view {
        bytes[] memory chunks = vm.parseJsonBytesArray(json, ".leaves.chunk");
        bytes32[] memory leaves = vm.parseJsonBytes32Array(json, ".leaves.leaf");
        assertGt(leaves.length, 7);
        for (uint256 k; k < leaves.length; ++k) {
            assertEq(digests.leaf(salt, chunks[k]), leaves[k]);
        }
    }

    function testFuzz_leaf_isTheHashOfItsBlocks_succeeds(bytes32 salt_, bytes memory chunk) public view {
        if (chunk.length == 0 || chunk.length > 1024) chunk = hex"00";
        bytes memory padded = bytes.concat(chunk, new bytes((32 - chunk.length % 32) % 32));
        bytes memory blocks;
        for (uint256 i; i < padded.length; i += 32) {
            bytes32 piece;
            assembly ("memory-safe") {
                piece := mload(add(add(padded, 0x20), i))
            }
            blocks = bytes.concat(blocks, salt_, piece);
        }
        bytes32 due = sha256(bytes.concat(blocks, salt_, bytes32(chunk.length)));
        assertEq(digests.leaf(salt_, chunk), due);
        // The argument that follows in memory, and in calldata, is not read.
        (bool done, bytes memory answer) = address(digests)
            .staticcall(
                bytes.concat(abi.encodeCall(digests.leaf, (salt_, chunk)), bytes32(type(uint256).max))
            );
        assertTrue(done);
        assertEq(abi.decode(answer, (bytes32)), due);
    }

    /// @dev Nonzero bytes after the chunk, as a caller may send them.
    function test_leaf_dirtyPadding_succeeds() public view {
        bytes memory call = abi.encodeCall(digests.leaf, (salt, hex"00070e"));
        for (uint256 k = call.length - 29; k < call.length; ++k) {
            call[k] = 0xff;
        }
        (bool done, bytes memory answer) = address(digests).staticcall(call);
        assertTrue(done);
        assertEq(abi.decode(answer, (bytes32)), digests.leaf(salt, hex"00070e"));
    }

    function test_leaf_noChunk_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.OutOfBounds.selector, "chunk", 1, 1024, 0));
        digests.leaf(salt, "");
        vm.expectRevert(abi.encodeWithSelector(Refusals.OutOfBounds.selector, "chunk", 1, 1024, 1025));
        digests.leaf(salt, new bytes(1025));
    }

    // ------------------------------------------------------------------ openings

    /// @dev From a chunk through the trees of chunks, tensors, steps and segments.
    function test_fold_everyOpening_succeeds() public view {
        bytes[] memory data = vm.parseJsonBytesArray(json, ".openings.data");
        bytes32[] memory leaves = vm.parseJsonBytes32Array(json, ".openings.leaf");
        bytes[] memory turns = vm.parseJsonBytesArray(json, ".openings.turns");
        bytes[] memory depths = vm.parseJsonBytesArray(json, ".openings.depths");
        bytes[] memory paths = vm.parseJsonBytesArray(json, ".openings.path");
        bytes32[] memory due = vm.parseJsonBytes32Array(json, ".openings.digest");
        uint256[2] memory kinds;
        for (uint256 k; k < due.length; ++k) {
            bool selected = _selected(k, _number(turns[k], 0));
            ++kinds[selected ? 1 : 0];
            bytes32 node = selected ? digests.leaf(salt, data[k]) : bytes32(0);
            assertEq(node, leaves[k]);
            uint256 next;
            for (uint256 tree; tree < turns[k].length / 4; ++tree) {
                if (tree != 0) node = trees.leafHash32(node);
                uint256 depth = _number(depths[k], tree);
                node = digests.fold(node, _number(turns[k], tree), depth, _part(paths[k], next, depth));
                next += depth;
            }
            assertEq(next * 32, paths[k].length);
            assertEq(node, due[k]);
        }
        assertGt(kinds[0], 0);
        assertGt(kinds[1], 0);
    }

    function test_treeHead_everyDigest_succeeds() public view {
        bytes[] memory segments = vm.parseJsonBytesArray(json, ".digests.segments");
        bytes32[] memory results = vm.parseJsonBytes32Array(json, ".digests.result");
        bytes32[] memory due = vm.parseJsonBytes32Array(json, ".digests.digest");
        for (uint256 k; k < due.length; ++k) {
            uint256 count = segments[k].length / 32;
            bytes32[] memory roots = _part(segments[k], 0, count);
            bytes32[] memory leaves = new bytes32[](count + 1);
            for (uint256 i; i < count; ++i) {
                leaves[i] = trees.leafHash32(roots[i]);
            }
            leaves[count] = trees.leafHash32(results[k]);
            assertEq(trees.treeHead(leaves), due[k]);
        }
    }

    /// @dev A look's digest covers its one segment.
    function test_treeHead_everyLook_succeeds() public view {
        bytes32[] memory segments = vm.parseJsonBytes32Array(json, ".looks.segment");
        bytes32[] memory due = vm.parseJsonBytes32Array(json, ".looks.digest");
        assertGt(due.length, 0);
        for (uint256 k; k < due.length; ++k) {
            assertEq(trees.leafHash32(segments[k]), due[k]);
        }
    }

    /// @dev Every place has exactly one name: turns beyond the depth are refused, as is a path of another
    /// length.
    function test_fold_otherDepth_reverts() public {
        bytes32[] memory path = new bytes32[](2);
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 3, 2));
        digests.fold(salt, 0, 3, path);
        vm.expectRevert(abi.encodeWithSelector(Refusals.OutOfBounds.selector, "turns", 0, 3, 4));
        digests.fold(salt, 4, 2, path);
        vm.expectRevert(abi.encodeWithSelector(Refusals.OutOfBounds.selector, "turns", 0, 0, 1));
        digests.fold(salt, 1, 0, new bytes32[](0));
        assertEq(digests.fold(salt, 0, 0, new bytes32[](0)), salt);
        path = new bytes32[](300);
        digests.fold(salt, type(uint256).max, 300, path);
    }

    // ------------------------------------------------------------------ inside

    /// @dev The result, segment 3, is never thinned.
    function _selected(uint256 k, uint256 turns) private view returns (bool) {
        uint256 segment = vm.parseJsonUintArray(json, ".openings.segment")[k];
        uint256 step = vm.parseJsonUintArray(json, ".openings.step")[k];
        uint256 thinning = vm.parseJsonUintArray(json, ".openings.thinning")[k];
        return Digests.selects(turns, step, segment == 3 ? 1 : thinning);
    }

    /// @dev The big-endian number of four bytes at a place.
    function _number(bytes memory joined, uint256 place) private pure returns (uint256 number) {
        for (uint256 i; i < 4; ++i) {
            number = number << 8 | uint8(joined[4 * place + i]);
        }
    }

    /// @dev Words of a joined list.
    function _part(bytes memory joined, uint256 first, uint256 count)
        private
        pure
        returns (bytes32[] memory words)
    {
        words = new bytes32[](count);
        for (uint256 i; i < count; ++i) {
            bytes32 word;
            assembly ("memory-safe") {
                word := mload(add(add(joined, 0x20), shl(5, add(first, i))))
            }
            words[i] = word;
        }
    }
}
