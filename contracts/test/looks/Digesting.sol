// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {Digests} from "../../src/libraries/Digests.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Looking} from "./Looking.sol";
import {SaltedTree} from "./SaltedTree.sol";

/// @title Looks with true states and digests: reveals, step trees, accusations and answers.
/// @notice State n is the state after n steps. Its tensor 0 has three chunks, the last one short; its tensor
/// 1 has one chunk of 40 bytes.
abstract contract Digesting is Looking {
    /// @notice A chunk in a segment, of state `step`, 0 ... 4.
    struct Spot {
        uint32 step;
        uint32 tensor;
        uint32 chunk;
    }

    struct Shown {
        bytes32 secret;
        bytes32 digest;
        bytes32 root;
        bytes32[] path;
    }

    struct Charge {
        address looker;
        GameId game;
        bytes32 salt;
        bytes32 root;
        ILooks.Place place;
        ILooks.ChunkProof proof;
    }

    struct Reply {
        ILooks.Accusation accusation;
        bytes32[] chunk;
        bytes32[] tensor;
        bytes32[] state;
    }

    bytes32 internal constant HELD = keccak256("held result");
    GameId internal constant NONE = GameId.wrap(0);

    /// @dev If `lies`, the digest of seat or look `liar` has another leaf at `lie` in each of its segments.
    bool internal lies;
    uint256 internal liar;
    Spot internal lie;
    /// @dev Number of the state that differs in what the solver posts and in proofs under it; 0: none.
    uint256 internal forged;

    // ------------------------------------------------------------------ states

    function _value(uint256 n, uint256 tensor, bool false_) internal pure returns (bytes memory value) {
        value = new bytes(tensor == 0 ? 2112 : 64);
        for (uint256 i; i < value.length; i += 32) {
            bytes32 word = keccak256(abi.encode(n, tensor, i, false_));
            assembly ("memory-safe") {
                mstore(add(add(value, 0x20), i), word)
            }
        }
        uint256 length = tensor == 0 ? 2100 : 40;
        assembly ("memory-safe") {
            mstore(value, length)
        }
    }

    /// @dev The tensor as the solver states it.
    function _said(uint256 n, uint256 tensor) internal view returns (bytes memory) {
        return _value(n, tensor, forged != 0 && n == forged);
    }

    function _tensors(uint256 n) internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](2);
        for (uint256 k; k < 2; ++k) {
            roots[k] = LeafTree.root(LeafTree.chunks(_said(n, k)));
        }
    }

    function _state(uint256 n) internal view returns (bytes32) {
        return LeafTree.root(LeafTree.leaves(_tensors(n)));
    }

    function _checkpoint(uint256 number) internal view override returns (bytes32) {
        return _state(STEPS * number);
    }

    /// @dev Number of a state of a segment.
    function _numberOf(uint256 segment, uint256 step) internal pure returns (uint256) {
        return STEPS * (segment - 1) + step;
    }

    function _states(uint256 segment) internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](STEPS + 1);
        for (uint256 step; step <= STEPS; ++step) {
            roots[step] = _state(_numberOf(segment, step));
        }
    }

    // ------------------------------------------------------------------ digests

    function _saltedChunks(uint256 number, uint256 segment, uint256 step, uint256 tensor)
        internal
        view
        returns (bytes32[] memory hashes)
    {
        bytes memory value = _value(_numberOf(segment, step), tensor, false);
        hashes = SaltedTree.leaves(_saltOf(number), value, step, thinning);
        if (!lies || liar != number || lie.step != step || lie.tensor != tensor) return hashes;
        hashes[lie.chunk] = keccak256("skipped");
    }

    function _saltedTensors(uint256 number, uint256 segment, uint256 step)
        internal
        view
        returns (bytes32[] memory roots)
    {
        roots = new bytes32[](2);
        for (uint256 k; k < 2; ++k) {
            roots[k] = LeafTree.root(_saltedChunks(number, segment, step, k));
        }
    }

    function _saltedStates(uint256 number, uint256 segment) internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](STEPS + 1);
        for (uint256 step; step <= STEPS; ++step) {
            roots[step] = LeafTree.root(LeafTree.leaves(_saltedTensors(number, segment, step)));
        }
    }

    function _segmentRoot(uint256 number, uint256 segment) internal view returns (bytes32) {
        return LeafTree.root(LeafTree.leaves(_saltedStates(number, segment)));
    }

    /// @dev The leaves of the tree whose root is the digest of a seat or look.
    function _parts(uint256 number) internal view returns (bytes32[] memory parts) {
        uint32[] memory segments = board.segmentsOf(task, number);
        parts = new bytes32[](number < 32 ? segments.length + 1 : 1);
        for (uint256 k; k < segments.length; ++k) {
            parts[k] = _segmentRoot(number, segments[k]);
        }
        if (number < 32) parts[segments.length] = HELD;
    }

    function _attest(uint256 number) internal override {
        bytes32 digest = LeafTree.root(LeafTree.leaves(_parts(number)));
        bytes32 saltHash = Digests.saltHash(_saltOf(number));
        vm.prank(_account(number));
        board.attest(task, number, digest, saltHash);
    }

    // ------------------------------------------------------------------ reveals

    function _shown(uint256 look) internal view returns (Shown memory) {
        uint256 seat = _lookedAt(look);
        bytes32[] memory parts = _parts(seat);
        bytes32[] memory hashes = LeafTree.leaves(parts);
        uint256 place = seat < 32 ? look % 32 % each : 0;
        return Shown(_secret(seat), LeafTree.root(hashes), parts[place], LeafTree.path(hashes, place));
    }

    function _reveal(uint256 look) internal {
        _revealWith(look, _shown(look));
    }

    function _revealWith(uint256 look, Shown memory shown) internal {
        vm.prank(anyone);
        looks.reveal(task, look, shown.secret, shown.digest, shown.root, shown.path);
    }

    // ------------------------------------------------------------------ games

    function _segmentOf(uint256 look) internal view returns (uint32) {
        return board.segmentsOf(task, look)[0];
    }

    function _challengeBy(address who, uint256 segment) internal returns (GameId) {
        SegmentIndex index = SegmentIndex.wrap(uint32(segment));
        bytes32 salt = _commit(task, index, who);
        (Leaf memory before, Leaf memory afterwards) =
            (_leaf(checkpoints, segment - 1), _leaf(checkpoints, segment));
        vm.prank(who);
        return game.challenge(task, index, salt, before, afterwards);
    }

    /// @dev The solver posts the requested step tree.
    function _expand(uint256 segment) internal {
        bytes32[] memory roots = _states(segment);
        bytes32 root = LeafTree.root(LeafTree.leaves(roots));
        (Leaf memory first, Leaf memory last) = (_leaf(roots, 0), _leaf(roots, STEPS));
        vm.prank(solver);
        game.expandSteps(task, SegmentIndex.wrap(uint32(segment)), root, first, last);
    }

    /// @dev The look's account requests the step tree, which is posted.
    function _openGame(uint256 look) internal returns (GameId id) {
        id = _challengeBy(_account(look), _segmentOf(look));
        _expand(_segmentOf(look));
    }

    /// @dev The challenger names a step of the look's segment.
    function _selectStep(GameId id, uint256 look, uint32 step) internal {
        bytes32[] memory roots = _states(_segmentOf(look));
        (Leaf memory before, Leaf memory afterwards) = (_leaf(roots, step - 1), _leaf(roots, step));
        bytes32 head = _head(id);
        address who = game.gameOf(id).challenger;
        vm.prank(who);
        game.selectStep(id, head, step, before, afterwards);
    }

    function _contest(uint256 look, GameId id) internal {
        address account = _account(_lookedAt(look));
        vm.prank(account);
        looks.contest(task, look, id);
    }

    /// @dev Ends the game: the side to move has no time left.
    function _timeOut(GameId id) internal {
        _reach(uint256(game.gameOf(id).deadline) + 1);
        game.timeOut(id);
    }

    function _assertVerdict(GameId id, IDisputeGame.Verdict verdict) internal view {
        assertEq(uint256(game.gameOf(id).verdict), uint256(verdict));
    }

    // ------------------------------------------------------------------ accusations

    function _placeOf(Spot memory spot) internal pure returns (ILooks.Place memory) {
        (uint32 turns, uint8 depth) = SaltedTree.placeOf(spot.tensor == 0 ? 3 : 1, spot.chunk);
        return ILooks.Place(spot.step, spot.tensor, turns, depth);
    }

    function _proofOf(uint256 segment, Spot memory spot) internal view returns (ILooks.ChunkProof memory) {
        bytes memory value = _said(_numberOf(segment, spot.step), spot.tensor);
        return ILooks.ChunkProof(
            LeafTree.chunk(value, spot.chunk),
            LeafTree.path(LeafTree.chunks(value), spot.chunk),
            _leaf(_tensors(_numberOf(segment, spot.step)), spot.tensor),
            _leaf(_states(segment), spot.step)
        );
    }

    function _chargeOf(uint256 look, GameId id, Spot memory spot) internal view returns (Charge memory) {
        uint256 seat = _lookedAt(look);
        uint256 segment = _segmentOf(look);
        return Charge(
            _account(look),
            id,
            _saltOf(seat),
            _segmentRoot(seat, segment),
            _placeOf(spot),
            _proofOf(segment, spot)
        );
    }

    function _accuseWith(uint256 look, Charge memory charge) internal {
        vm.prank(charge.looker);
        looks.accuse(task, look, charge.game, charge.salt, charge.root, charge.place, charge.proof);
    }

    function _accuse(uint256 look, GameId id, Spot memory spot) internal {
        _accuseWith(look, _chargeOf(look, id, spot));
    }

    /// @dev The siblings are from the seat's own trees; the leaf is the solver's chunk under the seat's salt.
    function _replyOf(uint256 look, Spot memory spot) internal view returns (Reply memory reply) {
        uint256 seat = _lookedAt(look);
        uint256 segment = _segmentOf(look);
        bytes32 leaf = SaltedTree.leaf(_saltOf(seat), _proofOf(segment, spot).chunk);
        reply.accusation = ILooks.Accusation(_placeOf(spot), leaf, _segmentRoot(seat, segment));
        reply.chunk = LeafTree.path(_saltedChunks(seat, segment, spot.step, spot.tensor), spot.chunk);
        reply.tensor = LeafTree.path(LeafTree.leaves(_saltedTensors(seat, segment, spot.step)), spot.tensor);
        reply.state = LeafTree.path(LeafTree.leaves(_saltedStates(seat, segment)), spot.step);
    }

    function _answer(uint256 look, Spot memory spot) internal {
        _answerWith(look, _replyOf(look, spot));
    }

    function _answerWith(uint256 look, Reply memory reply) internal {
        vm.prank(anyone);
        looks.answer(task, look, reply.accusation, reply.chunk, reply.tensor, reply.state);
    }

    // ------------------------------------------------------------------ ways to an accusation

    /// @dev The slots are drawn, revealed and attested, and nothing else is looked at; the account of look 32
    /// has the step tree.
    function _ready(uint256 slots) internal returns (GameId) {
        _looked(slots);
        for (uint256 slot; slot < 4; ++slot) {
            if (slots >> slot & 1 == 1) _reveal(32 + slot);
        }
        _attestSlots(1, slots);
        _drawPicks(0);
        return _openGame(32);
    }

    function _accused(uint256 slots, Spot memory spot) internal returns (GameId id) {
        id = _ready(slots);
        _accuse(32, id, spot);
    }

    function _expectWrongRoot(Reply memory reply) internal {
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        _answerWith(32, reply);
    }

    /// @dev Takes the lock of the seat or look, for which nobody answered in time, and checks who gets what.
    function _loses(uint256 look, uint256 seat) internal {
        (address account, address looker) = (_account(seat), _account(look));
        _reach(uint256(looks.lookOf(task, look).until) + 1);
        uint256 had = _free(looker);
        uint256 burned = vault.burned();
        uint256 stake = _stakeOf(account);
        vm.expectEmit();
        emit ILooks.Unanswered(task, look, account, looker, LOCK / 2);
        vm.prank(anyone);
        looks.takeUnanswered(task, look);
        assertEq(_free(looker), had + LOCK / 2 + GAME_COST);
        assertEq(vault.burned(), burned + LOCK / 2);
        assertEq(_stakeOf(account), stake - LOCK);
        assertTrue(board.seatOf(task, seat).caught);
        assertTrue(board.registrationOf(account).suspended);
    }
}
