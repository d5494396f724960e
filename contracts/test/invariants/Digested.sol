// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {Digests} from "../../src/libraries/Digests.sol";
import {Proofs} from "../../src/libraries/Proofs.sol";
import {SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Terms} from "../../src/types/Terms.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {SaltedTree} from "../looks/SaltedTree.sol";
import {Trees} from "../market/Trees.sol";
import {Booked} from "./Booked.sol";

/// @title True states, and true or false digests of them, in the smallest possible trees.
/// @notice A state, or the constants, is one tensor of one chunk; a segment is one step. Item n is the state
/// with that number, and the last item is the constants tree. A false digest has another leaf in state 1 of
/// each segment.
abstract contract Digested is Booked {
    uint32 internal constant CONSTANTS = SEGMENTS + 1;
    uint256 internal constant FIRST_JUROR = 160;
    bytes32 private constant HELD = keccak256("held result");
    bytes32[] private _none;
    /// @dev These accounts never lie, are never late, and neither claim nor accuse.
    mapping(address account => bool) public honest;

    function setUp() public virtual override {
        super.setUp();
        for (uint256 n; n <= SEGMENTS; ++n) {
            states[n] = _rootOf(n);
        }
        for (uint256 i; i < 3; ++i) {
            honest[verifiers[i]] = true;
        }
    }

    /// @dev Terms for these trees.
    function _smallTerms() internal view returns (Terms memory terms) {
        terms = _terms();
        terms.constantsRoot = _rootOf(CONSTANTS);
        (terms.constants, terms.stateTensors, terms.segmentSteps, terms.thinning) = (1, 1, 1, 1);
    }

    // ------------------------------------------------------------------ items

    function _chunk(uint256 item) internal pure returns (bytes memory) {
        return abi.encode("chunk", item);
    }

    function _leaf(bytes32 value) internal pure returns (bytes32) {
        return LeafTree.leaf(abi.encodePacked(value));
    }

    function _tensor(uint256 item) internal pure returns (bytes32) {
        return LeafTree.leaf(_chunk(item));
    }

    function _rootOf(uint256 item) internal pure returns (bytes32) {
        return _leaf(_tensor(item));
    }

    function _node(bytes32 left, bytes32 right) private pure returns (bytes32) {
        return sha256(abi.encodePacked(bytes1(0x01), left, right));
    }

    // ------------------------------------------------------------------ digests

    function _accountOf(TaskId task, uint256 number) internal view returns (address) {
        return board.seatOf(task, number).account;
    }

    /// @dev Whether the account in this seat or look, or of this juror, lies.
    function _lies(TaskId task, uint256 number) internal view returns (bool) {
        address account = _accountOf(task, number);
        return !honest[account] && uint256(keccak256(abi.encode(task, number, account))) % 3 == 0;
    }

    function _secret(address account) internal pure returns (bytes32) {
        return keccak256(abi.encode("secret", account));
    }

    function _saltOf(TaskId task, uint256 number) internal view returns (bytes32) {
        address account = _accountOf(task, number);
        bytes32 seed = board.auditOf(task).seed;
        return Digests.salt(address(board), task, number, account, seed, _secret(account));
    }

    /// @dev The leaf of a state in a segment's step tree under the salt.
    function _saltedState(TaskId task, uint256 number, uint256 segment, uint256 step)
        internal
        view
        returns (bytes32)
    {
        if (step == 1 && _lies(task, number)) return keccak256("skipped");
        return _leaf(_leaf(SaltedTree.leaf(_saltOf(task, number), _chunk(segment - 1 + step))));
    }

    function _segmentRoot(TaskId task, uint256 number, uint256 segment) internal view returns (bytes32) {
        return _node(_saltedState(task, number, segment, 0), _saltedState(task, number, segment, 1));
    }

    /// @dev Leaf hashes of the tree whose root is the digest of a seat or look.
    function _parts(TaskId task, uint256 number) internal view returns (bytes32[] memory hashes) {
        uint32[] memory segments = board.segmentsOf(task, number);
        hashes = new bytes32[](number < 32 ? segments.length + 1 : 1);
        for (uint256 k; k < segments.length; ++k) {
            hashes[k] = _leaf(_segmentRoot(task, number, segments[k]));
        }
        if (number < 32) hashes[segments.length] = _leaf(HELD);
    }

    /// @dev The digest of a juror that votes yes.
    function _digestOf(TaskId task, uint256 juror, uint256 item) internal view returns (bytes32) {
        if (_lies(task, juror)) return keccak256("guessed");
        return _leaf(SaltedTree.leaf(_saltOf(task, juror), _chunk(item)));
    }

    function _attest(TaskId task, uint256 number) internal override {
        bytes32 digest = LeafTree.root(_parts(task, number));
        bytes32 saltHash = Digests.saltHash(_saltOf(task, number));
        vm.prank(_accountOf(task, number));
        board.attest(task, number, digest, saltHash);
    }

    // ------------------------------------------------------------------ proofs

    /// @dev Mocks that the solver's step tree of the segment is posted.
    function _mockSteps(TaskId task, uint256 segment) internal {
        IDisputeGame.Claim memory steps;
        (steps.task, steps.size, steps.postedAt) = (task, 2, 1);
        steps.root = _node(_leaf(states[segment - 1]), _leaf(states[segment]));
        bytes32 key = Proofs.stepsKey(task, SegmentIndex.wrap(uint32(segment)));
        vm.mockCall(game, abi.encodeCall(IDisputeGame.claimOf, (key)), abi.encode(steps));
    }

    function _proofOf(uint256 segment, uint256 step) internal view returns (ILooks.ChunkProof memory) {
        uint256 n = segment - 1 + step;
        bytes32[] memory path = new bytes32[](1);
        path[0] = _leaf(states[segment - step]);
        return ILooks.ChunkProof(_chunk(n), _none, Leaf(_tensor(n), _none), Leaf(states[n], path));
    }

    function _openingOf(uint256 item) internal view returns (IJuries.Opening memory opening) {
        opening.chunk = _chunk(item);
        opening.tensor.value = _tensor(item);
        if (item == CONSTANTS) return opening;
        opening.state = Leaf(states[item], Trees.path(states, uint32(item), SEGMENTS + 1));
    }
}
