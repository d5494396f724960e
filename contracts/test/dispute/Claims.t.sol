// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Proofs} from "../../src/libraries/Proofs.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {LeafTree} from "./LeafTree.sol";
import {Play} from "./Play.sol";

/// @title Claims: requested by a game and posted once, by the solver, with the right context; what a late one
/// costs; shared between games.
contract ClaimsTest is Play {
    function setUp() public override {
        super.setUp();
        _start();
    }

    // ------------------------------------------------------------------ step trees

    function test_expandSteps_posts_succeeds() public {
        _challenge();
        bytes32 root = LeafTree.root(LeafTree.leaves(steps));
        vm.expectEmit(address(game));
        emit IDisputeGame.StepsPosted(_stepsKey(), task, SEGMENT, root);
        _expandSteps();
        assertEq(game.claimOf(_stepsKey()).root, root);
        assertEq(game.claimOf(_stepsKey()).postedAt, vm.getBlockTimestamp());
    }

    function test_expandSteps_notRequested_reverts() public {
        _challenge();
        SegmentIndex other = SegmentIndex.wrap(1);
        _stepsRevert(
            solver,
            other,
            steps,
            abi.encodeWithSelector(Refusals.NotRequested.selector, Proofs.stepsKey(task, other))
        );
    }

    function test_expandSteps_bySomeoneElse_reverts() public {
        _challenge();
        _stepsRevert(
            challenger,
            SEGMENT,
            steps,
            abi.encodeWithSelector(Refusals.NotAllowed.selector, solver, challenger)
        );
    }

    function test_expandSteps_twice_reverts() public {
        _challenge();
        _expandSteps();
        _stepsRevert(
            solver, SEGMENT, steps, abi.encodeWithSelector(Refusals.AlreadyPosted.selector, _stepsKey())
        );
    }

    /// @dev A claim posted after the solver's time is over does not save the game: the challenger's time
    /// never begins.
    function test_expandSteps_late_convicts_succeeds() public {
        GameId id = _challenge();
        uint64 deadline = game.gameOf(id).deadline;
        vm.warp(deadline + 1);
        _expandSteps();
        assertEq(game.gameOf(id).deadline, deadline, "still the solver's");
        bytes32 head = _head(id);
        (Leaf memory first, Leaf memory last) = (_leaf(steps, STEP - 1), _leaf(steps, STEP));
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotYourTurn.selector));
        game.selectStep(id, head, STEP, first, last);
        vm.warp(deadline + 10 * TIME);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.SolverSilent);
    }

    /// @dev A claim that is late in one game is in time in a game that was opened later.
    function test_expandSteps_lateInOneOfTwo_succeeds() public {
        GameId id = _challenge();
        vm.warp(game.gameOf(id).deadline);
        GameId other = _challengeBy(second, SEGMENT);
        vm.warp(vm.getBlockTimestamp() + 1);
        _expandSteps();
        assertEq(game.gameOf(other).deadline, vm.getBlockTimestamp() + TIME, "the challenger's");
        _selectStepBy(second, other);
        assertEq(game.gameOf(other).solverSpent, 1);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.SolverSilent);
    }

    function test_expandSteps_lastSecond_succeeds() public {
        GameId id = _challenge();
        vm.warp(game.gameOf(id).deadline);
        _expandSteps();
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp() + TIME);
    }

    function test_expandSteps_otherEnds_reverts() public {
        _challenge();
        bytes32[] memory other = steps;
        other[4] = keccak256("another r_2");
        _stepsRevert(
            solver,
            SEGMENT,
            other,
            abi.encodeWithSelector(
                Refusals.WrongContext.selector,
                Proofs.between(steps[0], steps[4]),
                Proofs.between(steps[0], other[4])
            )
        );
    }

    /// @dev The states around the segment are correct, but one end of the posted tree has another state. If
    /// this were accepted, a solver whose steps do not lead to r_i could not be convicted.
    function test_expandSteps_endNotInTheTree_reverts() public {
        _challenge();
        (Leaf memory first, Leaf memory last) = (_leaf(steps, 0), _leaf(steps, STEPS));
        uint256[2] memory ends = [uint256(0), STEPS];
        for (uint256 k; k < 2; ++k) {
            bytes32[] memory other = steps;
            other[ends[k]] = keccak256("another state");
            bytes32[] memory hashes = LeafTree.leaves(other);
            bytes32 root = LeafTree.root(hashes);
            // Each path is correct for the posted tree; only the leaf at this end is not in it.
            (first.path, last.path) = (LeafTree.path(hashes, 0), LeafTree.path(hashes, STEPS));
            bytes32 computed = LeafTree.root(_replaced(hashes, ends[k], LeafTree.leaves(steps)[ends[k]]));
            vm.prank(solver);
            vm.expectRevert(abi.encodeWithSelector(Refusals.WrongRoot.selector, root, computed));
            game.expandSteps(task, SEGMENT, root, first, last);
        }
    }

    function test_expandSteps_otherSize_reverts() public {
        _challenge();
        bytes32[] memory shorter = new bytes32[](4);
        (shorter[0], shorter[1], shorter[2], shorter[3]) = (steps[0], steps[1], steps[2], steps[4]);
        bytes32 root = LeafTree.root(LeafTree.leaves(shorter));
        (Leaf memory first, Leaf memory last) = (_leaf(shorter, 0), _leaf(shorter, 3));
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 3, 2));
        game.expandSteps(task, SEGMENT, root, first, last);
    }

    // ------------------------------------------------------------------ traces

    function test_expandTrace_stepsKey_reverts() public {
        _challenge();
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotRequested.selector, _stepsKey()));
        game.expandTrace(_stepsKey(), keccak256("no step tree"));
    }

    function test_expandTrace_twice_reverts() public {
        _inTop();
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyPosted.selector, _topKey()));
        game.expandTrace(_topKey(), keccak256("another"));
    }

    function test_expandTrace_bySomeoneElse_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        _selectStep(id);
        vm.prank(anyone);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, solver, anyone));
        game.expandTrace(_topKey(), keccak256("another"));
    }

    function test_claimOf_topAndCallee_succeeds() public {
        GameId id = _inCallee();
        IDisputeGame.Claim memory c = game.claimOf(_topKey());
        assertEq(c.program, top.id);
        assertEq(c.context, 0);
        assertEq(c.size, 7);
        c = game.claimOf(game.gameOf(id).claim);
        assertEq(game.gameOf(id).claim, Proofs.calleeKey(_topKey(), keccak256(top.instructions[3])));
        assertEq(game.gameOf(id).program, callee.id);
        assertEq(c.program, callee.id);
        assertEq(c.context, 0);
    }

    // ------------------------------------------------------------------ shared

    function test_claims_areShared_succeeds() public {
        GameId id = _inTop();
        GameId other = _challengeBy(second, SEGMENT);
        // The step tree and the trace are already posted: the second challenger is to move at once, on its
        // own clock.
        assertEq(game.gameOf(other).deadline, vm.getBlockTimestamp() + TIME);
        _selectStepBy(second, other);
        assertEq(game.gameOf(other).claim, game.gameOf(id).claim);
        assertEq(game.claimOf(_topKey()).root, LeafTree.root(LeafTree.leaves(topRoots)));
    }

    function _replaced(bytes32[] memory list, uint256 index, bytes32 value)
        private
        pure
        returns (bytes32[] memory)
    {
        list[index] = value;
        return list;
    }

    function _stepsRevert(address who, SegmentIndex segment, bytes32[] memory list, bytes memory reason)
        private
    {
        bytes32 root = LeafTree.root(LeafTree.leaves(list));
        (Leaf memory first, Leaf memory last) = (_leaf(list, 0), _leaf(list, list.length - 1));
        vm.prank(who);
        vm.expectRevert(reason);
        game.expandSteps(task, segment, root, first, last);
    }
}
