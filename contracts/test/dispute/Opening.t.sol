// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Play} from "./Play.sol";

/// @title Opening a game with a commitment.
contract OpeningTest is Play {
    function setUp() public override {
        super.setUp();
        _start();
    }

    // ------------------------------------------------------------------ challenge

    function test_challenge_requestsSteps_succeeds() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 1), _leaf(checkpoints, 2));
        vm.expectEmit(address(game));
        emit IDisputeGame.Challenged(GameId.wrap(1), task, challenger);
        vm.expectEmit(address(game));
        emit IDisputeGame.SegmentSelected(GameId.wrap(1), SEGMENT, checkpoints[1], checkpoints[2]);
        vm.prank(challenger);
        GameId id = game.challenge(task, SEGMENT, salt, first, last);

        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(g.task, task);
        assertEq(g.challenger, challenger);
        assertEq(_phase(id), uint256(IDisputeGame.Phase.Step));
        assertEq(g.segment, SEGMENT);
        assertEq(g.claim, _stepsKey());
        assertEq(g.bond, BOND);
        assertEq(
            g.head,
            keccak256(abi.encode(id, task, challenger, uint256(0), _stepsKey(), bytes32(0), bytes32(0)))
        );
        assertEq(g.deadline, vm.getBlockTimestamp() + TIME);
        IDisputeGame.Claim memory c = game.claimOf(_stepsKey());
        assertEq(c.context, keccak256(abi.encode(checkpoints[1], checkpoints[2])));
        assertEq(c.size, STEPS + 1);
        assertEq(c.postedAt, 0);
        assertEq(market.taskOf(task).openGames, 1);
        assertEq(game.games(), 1);
    }

    function test_challenge_inTheBlockOfTheCommitment_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        vm.roll(vm.getBlockNumber() - 1);
        _challengeReverts(
            challenger,
            SEGMENT,
            salt,
            abi.encodeWithSelector(Refusals.SameBlock.selector, vm.getBlockNumber())
        );
    }

    function test_challenge_afterOpeningPeriod_reverts() public {
        uint64 until = uint64(vm.getBlockTimestamp() + OPENING_PERIOD);
        bytes32 salt = _commit(task, SEGMENT, challenger);
        vm.warp(until + 1);
        _challengeReverts(
            challenger, SEGMENT, salt, abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1)
        );
    }

    function test_challenge_anotherSegmentThanCommitted_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        _challengeReverts(
            challenger,
            SegmentIndex.wrap(1),
            salt,
            abi.encodeWithSelector(
                Refusals.NotCommitted.selector, _commitment(task, SegmentIndex.wrap(1), challenger, salt)
            )
        );
    }

    function test_challenge_commitmentUsedTwice_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 1), _leaf(checkpoints, 2));
        vm.prank(challenger);
        game.challenge(task, SEGMENT, salt, first, last);
        _challengeReverts(
            challenger,
            SEGMENT,
            salt,
            abi.encodeWithSelector(
                Refusals.NotCommitted.selector, _commitment(task, SEGMENT, challenger, salt)
            )
        );
    }

    function test_challenge_segmentOutside_reverts() public {
        SegmentIndex[2] memory outside = [SegmentIndex.wrap(0), SegmentIndex.wrap(uint32(checkpoints.length))];
        for (uint256 k; k < 2; ++k) {
            bytes32 salt = _commit(task, outside[k], challenger);
            _challengeReverts(
                challenger,
                outside[k],
                salt,
                abi.encodeWithSelector(Refusals.NumberOutside.selector, outside[k], 3)
            );
        }
    }

    function test_challenge_leavesSwapped_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 1), _leaf(checkpoints, 2));
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.challenge(task, SEGMENT, salt, last, first);
    }

    /// @dev A commitment does not prolong the window.
    function test_challenge_windowOver_reverts() public {
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until);
        bytes32 salt = _commit(task, SEGMENT, challenger);
        vm.warp(until + 1);
        _challengeReverts(
            challenger, SEGMENT, salt, abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1)
        );
    }

    // ------------------------------------------------------------------ blind

    function test_challengeBlind_pinsTheTree_succeeds() public {
        GameId id = _blind();
        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(_phase(id), uint256(IDisputeGame.Phase.Segment));
        assertEq(g.segmentRoot, market.taskOf(task).root);
        assertEq(g.segmentSize, 4);
        assertEq(g.deadline, vm.getBlockTimestamp() + TIME);
        _selectSegment(id);
        assertEq(_phase(id), uint256(IDisputeGame.Phase.Step));
        assertEq(game.gameOf(id).claim, _stepsKey());
    }

    function test_challengeBlind_withSegmentCommitted_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        vm.prank(challenger);
        vm.expectRevert(
            abi.encodeWithSelector(
                Refusals.NotCommitted.selector, _commitment(task, UNKNOWN, challenger, salt)
            )
        );
        game.challengeBlind(task, salt);
    }

    function _challengeReverts(address who, SegmentIndex segment, bytes32 salt, bytes memory reason) private {
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 1), _leaf(checkpoints, 2));
        vm.prank(who);
        vm.expectRevert(reason);
        game.challenge(task, segment, salt, first, last);
    }
}
