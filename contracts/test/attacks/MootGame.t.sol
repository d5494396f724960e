// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Node} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Play} from "../dispute/Play.sol";

/// @title A game that becomes moot while the solver owes an answer in it. Clients read all games, so it must
/// remain readable.
contract MootGameTest is Play {
    GameId private silent;
    GameId private id;

    function setUp() public override {
        super.setUp();
        _start();
        id = _inTop();
        silent = _challengeBy(second, SegmentIndex.wrap(1));
        vm.warp(vm.getBlockTimestamp() + 10);
    }

    function test_gameOf_mootWithDemandOpen_succeeds() public {
        IDisputeGame.ValueOpening memory opening = _none();
        opening.instruction.program = top.opening;
        Node[] memory nodes = _node(LeafTree.leaves(topRoots), 0, 7);
        _demandWith(id, IDisputeGame.Tree.Trace, opening, nodes);
        _becomesMoot();
    }

    function test_gameOf_mootWithSplitDue_succeeds() public {
        _selectSum(id);
        _becomesMoot();
    }

    /// @dev The solver has been to move in the other game for ten seconds longer, so its clock there ends
    /// first.
    function _becomesMoot() private {
        vm.warp(game.gameOf(silent).deadline + 1);
        game.timeOut(silent);
        assertGt(game.gameOf(id).deadline, vm.getBlockTimestamp());
        game.closeMoot(id);
        _assertVerdict(id, IDisputeGame.Verdict.Moot);
        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(g.demandOpen, 0);
        assertEq(g.challenger, challenger);
        assertEq(g.task, task);
    }
}
