// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, TaskId} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Play} from "../dispute/Play.sol";
import {StepProgram} from "../dispute/StepProgram.sol";

/// @title A commitment opened in the wrong place (attack 34): on another task, another chain, or by another
/// account.
contract ReplaysTest is Play {
    /// @dev Forge's chain id, as a constant because `block.chainid` is re-evaluated at each use.
    uint256 private constant HERE = 31_337;
    TaskId private other;

    function setUp() public override {
        super.setUp();
        _start();
        other = _submitted(top.id, LeafTree.root(LeafTree.leaves(StepProgram.roots(constants))), checkpoints);
    }

    function test_challenge_onAnotherTask_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        _refused(other, challenger, salt, _commitment(other, SEGMENT, challenger, salt));
        _opens(salt);
    }

    function test_challenge_onAnotherChain_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        vm.chainId(HERE + 1);
        _refused(task, challenger, salt, _commitment(task, SEGMENT, challenger, salt));
        vm.chainId(HERE);
        _opens(salt);
    }

    function test_challenge_byAnotherAccount_reverts() public {
        bytes32 salt = _commit(task, SEGMENT, challenger);
        _refused(task, second, salt, _commitment(task, SEGMENT, second, salt));
        _opens(salt);
    }

    /// @dev The claims of one task do not count for another: nobody asked to expand this task's segment.
    function test_expandSteps_onAnotherTask_reverts() public {
        _challenge();
        bytes32 root = LeafTree.root(LeafTree.leaves(steps));
        (Leaf memory first, Leaf memory last) = (_leaf(steps, 0), _leaf(steps, STEPS));
        vm.prank(solver);
        vm.expectPartialRevert(Refusals.NotRequested.selector);
        game.expandSteps(other, SEGMENT, root, first, last);
        _expandSteps();
    }

    function _refused(TaskId on, address who, bytes32 salt, bytes32 due) private {
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 1), _leaf(checkpoints, 2));
        vm.prank(who);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotCommitted.selector, due));
        game.challenge(on, SEGMENT, salt, first, last);
    }

    /// @dev In the right place it opens, and the bond is kept.
    function _opens(bytes32 salt) private {
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 1), _leaf(checkpoints, 2));
        vm.prank(challenger);
        GameId id = game.challenge(task, SEGMENT, salt, first, last);
        assertEq(game.gameOf(id).bond, BOND);
    }
}
