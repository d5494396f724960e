// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IJuries} from "../../src/interfaces/IJuries.sol";
import {Digests} from "../../src/libraries/Digests.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Terms} from "../../src/types/Terms.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {IToken} from "../harness/Production.sol";
import {Looking} from "../looks/Looking.sol";
import {SaltedTree} from "../looks/SaltedTree.sol";

/// @title A drawn task with juries: claims, votes and openings of true items.
/// @notice Item n is the state with that number, item 7 the constants tree. Tensor 0 of an item has three
/// `chunks`, the last one short; every other tensor has one chunk of 40 bytes. Claims are by seat 0 unless
/// stated otherwise.
abstract contract Claiming is Looking {
    uint32 internal constant CONSTANTS = SEGMENTS + 1;
    uint256 internal constant FIRST = 160;
    uint256 internal constant PRICE = 50 * uint256(UNIT);
    /// @dev Penalty of a seat: the fee of two segments, and a draw fee.
    uint256 internal constant PENALTY = 2 * uint256(SEAT_FEE) + DRAW_FEE;
    uint256 internal constant BACK = SEAT_FEE + DRAW_FEE;

    /// @dev J: four are more than half of seven. A share is a seventh of 10^18 units, so one unit of the bond
    /// is left over.
    uint8 internal jurors = 7;
    /// @dev Number of chunks of tensor 0.
    uint256 internal chunks = 3;

    function setUp() public virtual override {
        super.setUp();
        chance = 0;
    }

    function _terms(bytes32 program, bytes32 constantsRoot, bytes32 initialState, uint32 segments)
        internal
        view
        override
        returns (Terms memory terms)
    {
        terms = super._terms(program, constantsRoot, initialState, segments);
        (terms.constantsRoot, terms.jurors) = (_root(CONSTANTS), jurors);
    }

    // ------------------------------------------------------------------ items

    function _count(uint256 item) internal pure returns (uint256) {
        return item == CONSTANTS ? 3 : 2;
    }

    function _value(uint256 item, uint256 tensor) internal view returns (bytes memory value) {
        uint256 full = tensor == 0 ? 1024 * (chunks - 1) : 0;
        value = new bytes(full + 64);
        for (uint256 i; i < value.length; i += 32) {
            bytes32 word = keccak256(abi.encode(item, tensor, i));
            assembly ("memory-safe") {
                mstore(add(add(value, 0x20), i), word)
            }
        }
        uint256 length = full + (tensor == 0 ? 52 : 40);
        assembly ("memory-safe") {
            mstore(value, length)
        }
    }

    function _tensors(uint256 item) internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](_count(item));
        for (uint256 k; k < roots.length; ++k) {
            roots[k] = LeafTree.root(LeafTree.chunks(_value(item, k)));
        }
    }

    function _root(uint256 item) internal view returns (bytes32) {
        return LeafTree.root(LeafTree.leaves(_tensors(item)));
    }

    function _checkpoint(uint256 number) internal view override returns (bytes32) {
        return _root(number);
    }

    // ------------------------------------------------------------------ digests

    function _salted(uint256 juror, uint256 item, uint256 tensor) internal view returns (bytes32[] memory) {
        return SaltedTree.leaves(_saltOf(juror), _value(item, tensor), 0, 1);
    }

    function _saltedTensors(uint256 juror, uint256 item) internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](_count(item));
        for (uint256 k; k < roots.length; ++k) {
            roots[k] = LeafTree.root(_salted(juror, item, k));
        }
    }

    function _digest(uint256 juror, uint256 item) internal view returns (bytes32) {
        return LeafTree.root(LeafTree.leaves(_saltedTensors(juror, item)));
    }

    /// @dev The walk to a chunk; its bits below the leaf are ones and have no meaning.
    function _walk(uint256 tensor, uint256 chunk) internal view returns (uint32) {
        (uint32 turns, uint8 depth) = SaltedTree.placeOf(tensor == 0 ? chunks : 1, chunk);
        if (depth == 0) return type(uint32).max;
        return turns << 32 - depth | type(uint32).max >> depth;
    }

    function _opening(uint256 juror, uint256 item, uint256 tensor, uint256 chunk)
        internal
        view
        returns (IJuries.Opening memory opening)
    {
        bytes memory value = _value(item, tensor);
        opening.chunk = LeafTree.chunk(value, chunk);
        opening.path = LeafTree.path(LeafTree.chunks(value), chunk);
        opening.tensor = _leaf(_tensors(item), tensor);
        if (item != CONSTANTS) opening.state = _leaf(checkpoints, item);
        opening.saltedPath = LeafTree.path(_salted(juror, item, tensor), chunk);
        opening.saltedTensor = LeafTree.path(LeafTree.leaves(_saltedTensors(juror, item)), tensor);
    }

    // ------------------------------------------------------------------ claims

    function _claim(uint256 seat, uint32 item) internal {
        address account = _account(seat);
        vm.prank(account);
        juries.claim(task, seat, item);
    }

    /// @dev Seat 0 has claimed the item, and the jury is drawn.
    function _seated(uint32 item) internal {
        _start();
        _claim(0, item);
        _drawWith(0);
        for (uint256 slot; slot < jurors; ++slot) {
            assertNotEq(_account(FIRST + slot), address(0));
        }
    }

    function _voteYes(uint256 slots) internal {
        uint256 item = juries.claimOf(task).item;
        for (uint256 slot; slots >> slot != 0; ++slot) {
            if (slots >> slot & 1 == 0) continue;
            uint256 juror = FIRST + slot;
            (bytes32 digest, bytes32 saltHash) = (_digest(juror, item), Digests.saltHash(_saltOf(juror)));
            vm.prank(_account(juror));
            board.attest(task, juror, digest, saltHash);
        }
    }

    function _voteNo(uint256 slots) internal {
        for (uint256 slot; slots >> slot != 0; ++slot) {
            if (slots >> slot & 1 == 0) continue;
            address account = _account(FIRST + slot);
            vm.prank(account);
            board.attest(task, FIRST + slot, 0, 0);
        }
    }

    /// @dev The votes of a jury on an item; jurors in neither list are silent. The voting period is over.
    function _voted(uint32 item, uint256 yes, uint256 no) internal {
        _seated(item);
        _voteYes(yes);
        _voteNo(no);
        _reach(uint256(_audit().until) + 1);
    }

    /// @dev The claimant objects, and the chunk must be opened.
    function _objected(uint32 item, uint256 yes, uint256 no, uint32 tensor, uint256 chunk) internal {
        _voted(item, yes, no);
        _object(tensor, _walk(tensor, chunk));
    }

    function _object(uint32 tensor, uint32 walk) internal {
        vm.prank(_claimant());
        juries.object(task, tensor, walk);
    }

    /// @dev These jurors open chunk 1 of tensor 0.
    function _open(uint256 slots) internal {
        uint256 item = juries.claimOf(task).item;
        for (uint256 slot; slots >> slot != 0; ++slot) {
            if (slots >> slot & 1 == 0) continue;
            uint256 juror = FIRST + slot;
            _openWith(juror, _digest(juror, item), _opening(juror, item, 0, 1));
        }
    }

    function _openWith(uint256 juror, bytes32 digest, IJuries.Opening memory opening) internal {
        vm.prank(anyone);
        juries.open(task, juror, _secret(juror), digest, opening);
    }

    function _close() internal {
        vm.prank(anyone);
        juries.close(task);
    }

    function _claimant() internal view returns (address) {
        return juries.claimOf(task).account;
    }

    // ------------------------------------------------------------------ ends of tasks

    /// @dev Convicts the solver, which is silent in a stranger's game.
    function _convict() internal {
        SegmentIndex one = SegmentIndex.wrap(1);
        bytes32 salt = _commit(task, one, second);
        (Leaf memory before, Leaf memory afterwards) = (_leaf(checkpoints, 0), _leaf(checkpoints, 1));
        vm.prank(second);
        GameId id = game.challenge(task, one, salt, before, afterwards);
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
    }

    // ------------------------------------------------------------------ what is left

    /// @dev Checks that all tokens are free, in locks, or burned.
    function _assertConserved() internal view {
        uint256 sum = vault.burned() + _free(submitter) + _free(solver) + _free(challenger) + _free(second);
        sum += _free(drawer) + _free(anyone);
        for (uint256 k; k < accounts.length; ++k) {
            sum += _free(accounts[k]);
        }
        for (uint256 lock = 1; lock <= vault.locks(); ++lock) {
            sum += _remaining(lock);
        }
        assertEq(sum, IToken(vault.token()).balanceOf(address(vault)));
    }
}
