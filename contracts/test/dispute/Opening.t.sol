// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Errors} from "../../src/libraries/Errors.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Play} from "./Play.sol";

/// @title Priority commitments and the opening of a game.
contract OpeningTest is Play {
    function setUp() public override {
        super.setUp();
        _start();
    }

    // ------------------------------------------------------------------ commit and reclaim

    function test_commit_locksBond_succeeds() public {
        uint256 free = _free(challenger);
        bytes32 commitment = keccak256("sealed");
        vm.expectEmit(address(game));
        emit IDisputeGame.Committed(commitment, challenger, BOND);
        vm.prank(challenger);
        game.commit(commitment);
        assertEq(_free(challenger), free - BOND);
    }

    function test_commit_twice_reverts() public {
        vm.startPrank(challenger);
        game.commit(keccak256("sealed"));
        vm.expectRevert(abi.encodeWithSelector(Errors.AlreadyCommitted.selector, keccak256("sealed")));
        game.commit(keccak256("sealed"));
        vm.stopPrank();
    }

    function test_commit_withoutFreeTokens_reverts() public {
        vm.prank(anyone);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotEnoughFree.selector, anyone, BOND, 0));
        game.commit(keccak256("sealed"));
    }

    /// @dev Copying a commitment out of the pool takes nothing from its owner.
    function test_commit_copied_succeeds() public {
        bytes32 salt = keccak256("salt");
        bytes32 commitment = _commitment(task, SEGMENT, challenger, salt);
        vm.prank(second);
        game.commit(commitment);
        vm.prank(challenger);
        game.commit(commitment);
        vm.roll(vm.getBlockNumber() + 1);
        _challengeReverts(
            second,
            SEGMENT,
            salt,
            abi.encodeWithSelector(Errors.NotCommitted.selector, _commitment(task, SEGMENT, second, salt))
        );
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 1), _leaf(checkpoints, 2));
        vm.prank(challenger);
        assertEq(game.challenge(task, SEGMENT, salt, first, last), GameId.wrap(1));
    }

    function test_reclaim_afterOpeningPeriod_succeeds() public {
        uint256 free = _free(challenger);
        bytes32 salt = _commit(task, SEGMENT, challenger);
        vm.warp(vm.getBlockTimestamp() + OPENING_PERIOD + 1);
        vm.prank(challenger);
        game.reclaim(_commitment(task, SEGMENT, challenger, salt));
        assertEq(_free(challenger), free);
    }

    function test_reclaim_twice_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        bytes32 commitment = _commitment(task, SEGMENT, challenger, salt);
        vm.warp(vm.getBlockTimestamp() + OPENING_PERIOD + 1);
        vm.startPrank(challenger);
        game.reclaim(commitment);
        vm.expectRevert(abi.encodeWithSelector(Errors.NotCommitted.selector, commitment));
        game.reclaim(commitment);
        vm.stopPrank();
    }

    function test_reclaim_early_reverts() public {
        uint64 until = uint64(vm.getBlockTimestamp() + OPENING_PERIOD);
        bytes32 salt = _commit(task, SEGMENT, challenger);
        vm.warp(until);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooEarly.selector, until, until));
        game.reclaim(_commitment(task, SEGMENT, challenger, salt));
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
            challenger, SEGMENT, salt, abi.encodeWithSelector(Errors.SameBlock.selector, vm.getBlockNumber())
        );
    }

    function test_challenge_afterOpeningPeriod_reverts() public {
        uint64 until = uint64(vm.getBlockTimestamp() + OPENING_PERIOD);
        bytes32 salt = _commit(task, SEGMENT, challenger);
        vm.warp(until + 1);
        _challengeReverts(
            challenger, SEGMENT, salt, abi.encodeWithSelector(Errors.TooLate.selector, until, until + 1)
        );
    }

    function test_challenge_anotherSegmentThanCommitted_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        _challengeReverts(
            challenger,
            SegmentIndex.wrap(1),
            salt,
            abi.encodeWithSelector(
                Errors.NotCommitted.selector, _commitment(task, SegmentIndex.wrap(1), challenger, salt)
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
            abi.encodeWithSelector(Errors.NotCommitted.selector, _commitment(task, SEGMENT, challenger, salt))
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
                abi.encodeWithSelector(Errors.NumberOutside.selector, outside[k], 3)
            );
        }
    }

    function test_challenge_leavesSwapped_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 1), _leaf(checkpoints, 2));
        vm.prank(challenger);
        vm.expectPartialRevert(Errors.WrongRoot.selector);
        game.challenge(task, SEGMENT, salt, last, first);
    }

    function test_challenge_windowOver_reverts() public {
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until + 1);
        bytes32 salt = _commit(task, SEGMENT, challenger);
        _challengeReverts(
            challenger, SEGMENT, salt, abi.encodeWithSelector(Errors.TooLate.selector, until, until + 1)
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
            abi.encodeWithSelector(Errors.NotCommitted.selector, _commitment(task, UNKNOWN, challenger, salt))
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
