// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IJuries} from "../../src/interfaces/IJuries.sol";
import {Digests} from "../../src/libraries/Digests.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Claiming} from "./Claiming.sol";

/// @title Objections, and what a juror's opening must prove: the chunk, under the item and under the juror's
/// digest.
contract OpeningsTest is Claiming {
    // ------------------------------------------------------------------ objections

    function test_object_inTime_succeeds() public {
        _voted(3, 15, 16);
        uint64 until = uint64(vm.getBlockTimestamp()) + MOVE_TIME;
        uint32 walk = _walk(0, 2);
        vm.expectEmit();
        emit IJuries.Objected(task, 1, walk, until);
        _object(1, walk);
        IJuries.Claim memory claim = juries.claimOf(task);
        assertEq(claim.until, until);
        assertEq(claim.tensor, 1);
        assertEq(claim.walk, walk);
        assertEq(claim.opened, 0);
        assertEq(claim.item, 3);
    }

    function test_object_refused_reverts() public {
        _start();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoClaim.selector, task));
        juries.object(task, 0, 0);
        _claim(0, 3);
        address claimant = _account(0);
        _expectNoObjection(claimant, 0, abi.encodeWithSelector(Refusals.DrawPending.selector, task));
        _drawWith(0);
        _voteYes(15);
        uint64 until = _audit().until;
        vm.warp(until);
        bytes memory refusal = abi.encodeWithSelector(Refusals.TooEarly.selector, until, until);
        _expectNoObjection(claimant, 0, refusal);
        until += MOVE_TIME;
        vm.warp(until + 1);
        refusal = abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1);
        _expectNoObjection(claimant, 0, refusal);
        vm.warp(until);
        refusal = abi.encodeWithSelector(Refusals.NotAllowed.selector, claimant, anyone);
        _expectNoObjection(anyone, 0, refusal);
        refusal = abi.encodeWithSelector(Refusals.OutOfBounds.selector, "tensor", 0, 1, 2);
        _expectNoObjection(claimant, 2, refusal);
        _object(1, 0);
        refusal = abi.encodeWithSelector(Refusals.AlreadyObjected.selector, task);
        _expectNoObjection(claimant, 0, refusal);
    }

    /// @dev The constants tree has a different size.
    function test_object_constants_succeeds() public {
        _voted(CONSTANTS, 15, 0);
        bytes memory refusal = abi.encodeWithSelector(Refusals.OutOfBounds.selector, "tensor", 0, 2, 3);
        _expectNoObjection(_claimant(), 3, refusal);
        _object(2, 0);
    }

    /// @dev One yes of seven is not a majority, but it would be paid.
    function test_object_noMajority_succeeds() public {
        _voted(3, 1, 14);
        _object(0, _walk(0, 1));
        _open(1);
    }

    function test_object_nobodySaidYes_reverts() public {
        _voted(3, 0, 7);
        _expectNoObjection(_claimant(), 0, abi.encodeWithSelector(Refusals.NotObjected.selector, task));
        _close();
    }

    /// @dev Four of seven vote no: the verdict is decided, and no yes is paid.
    function test_object_mostSaidNo_reverts() public {
        _voted(3, 7, 120);
        _expectNoObjection(_claimant(), 0, abi.encodeWithSelector(Refusals.NotObjected.selector, task));
        _close();
    }

    // ------------------------------------------------------------------ openings

    /// @dev Every chunk of two states and of the constants: paths with no, one and two siblings.
    function test_open_everyChunk_succeeds() public {
        uint32[3] memory items = [uint32(0), SEGMENTS, CONSTANTS];
        _start();
        uint256 start = vm.snapshotState();
        for (uint256 k; k < 3; ++k) {
            _claim(0, items[k]);
            _drawWith(0);
            _voteYes(15);
            _reach(uint256(_audit().until) + 1);
            uint256 voted = vm.snapshotState();
            for (uint32 tensor; tensor < _count(items[k]); ++tensor) {
                for (uint256 chunk; chunk < (tensor == 0 ? 3 : 1); ++chunk) {
                    _object(tensor, _walk(tensor, chunk));
                    IJuries.Opening memory opening = _opening(FIRST + 2, items[k], tensor, chunk);
                    address account = _account(FIRST + 2);
                    bytes32 digest = _digest(FIRST + 2, items[k]);
                    vm.expectEmit();
                    emit IJuries.Opened(task, FIRST + 2, account);
                    _openWith(FIRST + 2, digest, opening);
                    assertEq(juries.claimOf(task).opened, 4);
                    vm.revertToState(voted);
                }
            }
            vm.revertToState(start);
        }
    }

    function test_open_refused_reverts() public {
        _seated(3);
        _attest(1);
        _voteYes(15);
        _voteNo(16);
        _reach(uint256(_audit().until) + 1);
        IJuries.Opening memory opening = _opening(FIRST, 3, 0, 1);
        bytes32 digest = _digest(FIRST, 3);
        _expectNoOpening(FIRST, digest, opening, abi.encodeWithSelector(Refusals.NotObjected.selector, task));
        _object(0, _walk(0, 1));
        // A no, a silent juror, an empty slot, a number out of range, two seats (one is attested) and a look.
        uint256[7] memory none = [FIRST + 4, FIRST + 5, FIRST + 7, FIRST + 32, 0, 1, 32];
        for (uint256 k; k < 7; ++k) {
            bytes memory nothing = abi.encodeWithSelector(Refusals.NothingToOpen.selector, task, none[k]);
            _expectNoOpening(none[k], digest, opening, nothing);
        }
        _open(1);
        _expectNoOpening(
            FIRST, digest, opening, abi.encodeWithSelector(Refusals.NothingToOpen.selector, task, FIRST)
        );
        uint64 until = juries.claimOf(task).until;
        vm.warp(until + 1);
        bytes memory late = abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1);
        _expectNoOpening(FIRST + 1, digest, opening, late);
        vm.warp(until);
        _open(2);
        assertEq(juries.claimOf(task).opened, 3);
    }

    function test_open_noClaim_reverts() public {
        _start();
        IJuries.Opening memory opening;
        _expectNoOpening(FIRST, 0, opening, abi.encodeWithSelector(Refusals.NoClaim.selector, task));
    }

    /// @dev Another juror's digest and opening, copied: the secret, or the account in the salt, does not
    /// match.
    function test_open_copied_reverts() public {
        _objected(3, 15, 0, 0, 1);
        IJuries.Opening memory opening = _opening(FIRST + 1, 3, 0, 1);
        bytes32 digest = _digest(FIRST + 1, 3);
        vm.expectPartialRevert(Refusals.WrongAttestation.selector);
        juries.open(task, FIRST, _secret(FIRST + 1), digest, opening);
        vm.expectPartialRevert(Refusals.WrongAttestation.selector);
        juries.open(task, FIRST, _secret(FIRST), digest, opening);
        digest = _digest(FIRST, 3);
        vm.expectPartialRevert(Refusals.WrongAttestation.selector);
        juries.open(task, FIRST, _secret(FIRST + 1), digest, opening);
        // Its own digest, with the other juror's leaves.
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        juries.open(task, FIRST, _secret(FIRST), digest, opening);
        assertEq(juries.claimOf(task).opened, 0);
    }

    /// @dev A juror that copies another's attestation votes yes, but can open nothing.
    function test_open_copiedVote_reverts() public {
        _seated(3);
        bytes32 digest = _digest(FIRST + 1, 3);
        bytes32 saltHash = Digests.saltHash(_saltOf(FIRST + 1));
        address copycat = _account(FIRST);
        vm.prank(copycat);
        board.attest(task, FIRST, digest, saltHash);
        _voteYes(14);
        _reach(uint256(_audit().until) + 1);
        _object(0, _walk(0, 1));
        IJuries.Opening memory opening = _opening(FIRST + 1, 3, 0, 1);
        vm.expectPartialRevert(Refusals.WrongAttestation.selector);
        juries.open(task, FIRST, _secret(FIRST + 1), digest, opening);
    }

    /// @dev Each is a valid opening of something else.
    function test_open_anotherPlace_reverts() public {
        _objected(3, 15, 0, 0, 1);
        bytes32 digest = _digest(FIRST, 3);
        // Another chunk of the tensor, at the same depth and at another depth; another tensor; another state.
        for (uint256 chunk; chunk < 3; chunk += 2) {
            _expectPartial(digest, _opening(FIRST, 3, 0, chunk), Refusals.WrongRoot.selector);
        }
        _expectPartial(digest, _opening(FIRST, 3, 1, 0), Refusals.WrongRoot.selector);
        _expectPartial(digest, _opening(FIRST, 2, 0, 1), Refusals.WrongRoot.selector);
        _open(1);
    }

    /// @dev A juror with a digest of another state cannot open the item.
    function test_open_digestOfAnotherItem_reverts() public {
        _seated(3);
        bytes32 digest = _digest(FIRST, 2);
        bytes32 saltHash = Digests.saltHash(_saltOf(FIRST));
        address account = _account(FIRST);
        vm.prank(account);
        board.attest(task, FIRST, digest, saltHash);
        _voteYes(14);
        _reach(uint256(_audit().until) + 1);
        _object(0, _walk(0, 1));
        // The chunk of the other state is in the digest but not in the item; the item's is not in the digest.
        IJuries.Opening memory opening = _opening(FIRST, 2, 0, 1);
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening.tensor = _opening(FIRST, 3, 0, 1).tensor;
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening.tensor = _opening(FIRST, 2, 0, 1).tensor;
        opening.state = _opening(FIRST, 3, 0, 1).state;
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening = _opening(FIRST, 3, 0, 1);
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening.saltedPath = _opening(FIRST, 2, 0, 1).saltedPath;
        opening.saltedTensor = _opening(FIRST, 2, 0, 1).saltedTensor;
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
    }

    /// @dev Each part of a valid opening, altered, shortened or lengthened.
    function test_open_bentPart_reverts() public {
        _objected(3, 15, 0, 0, 1);
        bytes32 digest = _digest(FIRST, 3);
        IJuries.Opening memory opening = _opening(FIRST, 3, 0, 1);
        opening.chunk[7] ^= 0x01;
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening = _opening(FIRST, 3, 0, 1);
        opening.path[1] = "sibling";
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening = _opening(FIRST, 3, 0, 1);
        opening.saltedPath[0] = "sibling";
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening = _opening(FIRST, 3, 0, 1);
        opening.saltedTensor[0] = "sibling";
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening = _opening(FIRST, 3, 0, 1);
        opening.tensor.path[0] = "sibling";
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening = _opening(FIRST, 3, 0, 1);
        opening.state.path[0] = "sibling";
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        opening = _opening(FIRST, 3, 0, 1);
        opening.saltedPath = new bytes32[](1);
        _expectPartial(digest, opening, Rfc9162.ProofLength.selector);
        opening = _opening(FIRST, 3, 0, 1);
        opening.chunk = "";
        _expectPartial(digest, opening, Refusals.OutOfBounds.selector);
        opening.chunk = new bytes(1025);
        _expectPartial(digest, opening, Refusals.OutOfBounds.selector);
        opening = _opening(FIRST, 3, 0, 1);
        opening.path = new bytes32[](33);
        _expectPartial(digest, opening, Refusals.LimitReached.selector);
    }

    /// @dev An inner node does not count as a leaf, nor its hash input as a chunk: the walk continues to a
    /// leaf.
    function test_open_innerNode_reverts() public {
        _objected(3, 15, 0, 0, 1);
        bytes32[] memory leaves = LeafTree.chunks(_value(3, 0));
        IJuries.Opening memory opening = _opening(FIRST, 3, 0, 1);
        opening.chunk = abi.encodePacked(leaves[0], leaves[1]);
        bytes32 sibling = opening.path[1];
        opening.path = new bytes32[](1);
        opening.path[0] = sibling;
        sibling = opening.saltedPath[1];
        opening.saltedPath = new bytes32[](1);
        opening.saltedPath[0] = sibling;
        _expectPartial(_digest(FIRST, 3), opening, Refusals.WrongRoot.selector);
        opening.chunk = abi.encodePacked(bytes1(0x01), leaves[0], leaves[1]);
        _expectPartial(_digest(FIRST, 3), opening, Refusals.WrongRoot.selector);
    }

    /// @dev The constants tree is known from the terms: an opening with a state is refused.
    function test_open_constantsWithAState_reverts() public {
        _objected(CONSTANTS, 15, 0, 0, 1);
        bytes32 digest = _digest(FIRST, CONSTANTS);
        IJuries.Opening memory opening = _opening(FIRST, CONSTANTS, 0, 1);
        opening.state = _leaf(checkpoints, 3);
        _expectPartial(digest, opening, Refusals.UnexpectedProof.selector);
        opening = _opening(FIRST, CONSTANTS, 0, 1);
        opening.state.path = new bytes32[](1);
        _expectPartial(digest, opening, Refusals.UnexpectedProof.selector);
        opening = _opening(FIRST, CONSTANTS, 0, 1);
        opening.tensor.path[0] = "sibling";
        _expectPartial(digest, opening, Refusals.WrongRoot.selector);
        _open(1);
    }

    // ------------------------------------------------------------------ inside

    function _expectNoObjection(address who, uint32 tensor, bytes memory refusal) private {
        vm.expectRevert(refusal);
        vm.prank(who);
        juries.object(task, tensor, 0);
    }

    function _expectNoOpening(
        uint256 juror,
        bytes32 digest,
        IJuries.Opening memory opening,
        bytes memory refusal
    ) private {
        vm.expectRevert(refusal);
        juries.open(task, juror, _secret(juror), digest, opening);
    }

    function _expectPartial(bytes32 digest, IJuries.Opening memory opening, bytes4 refusal) private {
        vm.expectPartialRevert(refusal);
        juries.open(task, FIRST, _secret(FIRST), digest, opening);
        assertEq(juries.claimOf(task).opened, 0);
    }
}
