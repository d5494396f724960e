// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf, Node} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Play} from "../dispute/Play.sol";

/// @title A game that becomes moot while the solver owes an answer in it: everybody reads all games, so it must be readable.
/// @notice The solver's clock is 60 seconds and the challenger's 30, so the answer is due later than any move of the challenger.
contract MootGameTest is Play {
    GameId private silent;
    GameId private id;

    function setUp() public override {
        super.setUp();
        _start();
        id = _inTop();
        silent = _challengeBy(second, SegmentIndex.wrap(1));
    }

    function test_gameOf_mootWithDemandOpen_succeeds() public {
        IDisputeGame.ValueOpening memory opening = _none();
        opening.instruction.program = top.opening;
        Node[] memory nodes = _node(LeafTree.leaves(topRoots), 0, 7);
        _demandWith(id, IDisputeGame.Tree.Trace, opening, nodes);
        _becomesMoot();
    }

    function test_gameOf_mootWithSplitDue_succeeds() public {
        bytes32 head = _head(id);
        InstructionOpening memory sum = _open(top, 5);
        Leaf memory value = _leaf(topRoots, 5);
        ChunkOpening memory claimed = _chunk(0, topValues[5], 0);
        vm.prank(challenger);
        game.selectElement(id, head, sum, 0, value, claimed);
        _becomesMoot();
    }

    /// @dev The other game's claim was asked for first, so the answer in this one is due a clock later.
    function _becomesMoot() private {
        vm.warp(game.gameOf(silent).deadline + 1);
        game.timeOut(silent);
        assertGt(game.gameOf(id).deadline, vm.getBlockTimestamp() + CHALLENGER_CLOCK);
        game.closeMoot(id);
        _assertVerdict(id, IDisputeGame.Verdict.Moot);
        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(g.demandOpen, 0);
        assertEq(g.challenger, challenger);
        assertEq(g.task, task);
    }
}
