// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Offer} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IToken} from "../harness/Production.sol";
import {LeafTree} from "./LeafTree.sol";
import {Play} from "./Play.sol";

/// @title A drawn task of eight segments and three seats, each with its own segment; and ways to convict its
/// solver.
abstract contract Seated is Play {
    uint8 internal constant SEATS = 3;
    uint32 internal constant SEGMENTS = 8;
    /// @dev Owed to a seat that spoke up: the cost of its game, and its fee.
    uint256 internal constant DUE = uint256(GAME_COST) + SEAT_FEE;

    /// @dev The account of each seat.
    address[SEATS] internal holders;
    SegmentIndex[SEATS] internal own;
    /// @dev A segment that no seat has.
    SegmentIndex internal others;

    function setUp() public virtual override {
        super.setUp();
        IToken token = IToken(vault.token());
        for (uint256 k = 1; k < 5; ++k) {
            address who = makeAddr(string.concat("verifier ", vm.toString(k)));
            token.mint(who, FUNDS);
            vm.startPrank(who);
            token.approve(address(vault), FUNDS);
            vault.deposit(FUNDS);
            board.register(
                2, Offer(type(uint64).max, type(uint64).max, type(uint128).max, 0, 0, type(uint32).max)
            );
            vm.stopPrank();
        }
    }

    function _terms(bytes32 program, bytes32 constantsRoot, bytes32 initialState, uint32 segments)
        internal
        view
        virtual
        override
        returns (Terms memory terms)
    {
        terms = super._terms(program, constantsRoot, initialState, segments);
        terms.verifiers = SEATS;
    }

    /// @dev Posts, submits and draws the task. The word of the round is the same in every test, and so are
    /// the seats.
    function _begin() internal {
        steps = new bytes32[](STEPS + 1);
        for (uint256 k; k <= SEGMENTS; ++k) {
            checkpoints.push(keccak256(abi.encode("checkpoint", k)));
        }
        task = _submitted(top.id, keccak256("constants"), checkpoints);
        bool[SEGMENTS + 1] memory taken;
        for (uint8 i; i < SEATS; ++i) {
            holders[i] = board.seatOf(task, i).account;
            own[i] = SegmentIndex.wrap(board.segmentsOf(task, i)[0]);
            assertFalse(taken[SegmentIndex.unwrap(own[i])], "two seats have one segment");
            taken[SegmentIndex.unwrap(own[i])] = true;
        }
        uint32 free = 1;
        while (taken[free]) ++free;
        others = SegmentIndex.wrap(free);
    }

    function _attest(uint8 seat) internal {
        vm.prank(holders[seat]);
        board.attest(task, seat, keccak256("digest"), 0);
    }

    /// @dev A commitment that a later block may open.
    function _commitFrom(uint8 seat, SegmentIndex segment, address who) internal returns (bytes32 salt) {
        salt = keccak256(abi.encode(who, segment, vm.getBlockNumber()));
        bytes32 commitment = _commitment(task, segment, who, salt);
        vm.prank(who);
        commitments.commit(task, seat, commitment);
        vm.roll(vm.getBlockNumber() + 1);
    }

    function _openLate(uint8 seat, SegmentIndex segment, address who, bytes32 salt) internal {
        vm.prank(who);
        commitments.openLate(task, segment, salt, seat);
    }

    function _openBlind(address who) internal returns (GameId id) {
        bytes32 salt = _commit(task, UNKNOWN, who);
        vm.prank(who);
        return game.challengeBlind(task, salt);
    }

    /// @dev Convicts the solver, which stays silent about this segment.
    function _convictOn(SegmentIndex segment, address who) internal returns (GameId id) {
        id = _challengeBy(who, segment);
        _lapse(id);
    }

    /// @dev Convicts the solver by a game that has selected no segment and that it does not answer.
    function _convictBlind() internal returns (GameId id) {
        id = _openBlind(challenger);
        _demand(id, IDisputeGame.Tree.Segment, _node(LeafTree.leaves(checkpoints), 0, 8));
        _lapse(id);
    }

    function _lapse(GameId id) internal {
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
    }

    /// @dev The amount left in the lock of the stake.
    function _stakeLeft() internal view returns (uint256 remaining) {
        (,, remaining) = vault.lockOf(market.taskOf(task).stake);
    }

    function _expand(SegmentIndex segment) internal {
        bytes32[] memory states = new bytes32[](STEPS + 1);
        uint32 number = SegmentIndex.unwrap(segment);
        (states[0], states[STEPS]) = (checkpoints[number - 1], checkpoints[number]);
        bytes32 root = LeafTree.root(LeafTree.leaves(states));
        (Leaf memory first, Leaf memory last) = (_leaf(states, 0), _leaf(states, STEPS));
        vm.prank(solver);
        game.expandSteps(task, segment, root, first, last);
    }

    /// @dev A game on the segment that its challenger abandons.
    function _dismissed(SegmentIndex segment, address who) internal returns (GameId id) {
        id = _challengeBy(who, segment);
        if (game.claimOf(game.gameOf(id).claim).postedAt == 0) _expand(segment);
        _lapse(id);
        assertEq(uint256(game.gameOf(id).verdict), uint256(IDisputeGame.Verdict.ChallengerSilent));
    }

    /// @dev Commits. Then, within the opening period and before the commitment is opened, the solver is
    /// convicted on a segment that no seat has.
    function _late(uint8 seat, SegmentIndex segment, address who) internal returns (bytes32 salt) {
        GameId id = _challengeBy(challenger, others);
        vm.warp(game.gameOf(id).deadline);
        salt = _commitFrom(seat, segment, who);
        _lapse(id);
    }

    function _nothingOwed(uint8 seat) internal {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingOwed.selector, task, seat));
    }
}
