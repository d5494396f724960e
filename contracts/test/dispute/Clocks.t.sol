// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Node} from "../../src/types/Openings.sol";
import {LeafTree} from "./LeafTree.sol";
import {Play} from "./Play.sol";

/// @title Whose clock runs, move by move: a side's clock runs only while it is to move.
contract ClocksTest is Play {
    function setUp() public override {
        super.setUp();
        _start();
    }

    /// @dev Moves down to a block of a split, each after an arbitrary number of seconds.
    function testFuzz_moves_countForTheirSide_succeeds(uint8[8] memory seconds_) public {
        for (uint256 k; k < 8; ++k) {
            seconds_[k] = uint8(bound(seconds_[k], 0, TIME / 4));
        }
        GameId id = _blind();
        _wait(seconds_[0]);
        _selectSegment(id);
        _wait(seconds_[1]);
        _expandSteps();
        _wait(seconds_[2]);
        _selectStep(id);
        _assertSpent(id, seconds_[1], uint256(seconds_[0]) + seconds_[2]);
        _wait(seconds_[3]);
        _expandTop();
        _wait(seconds_[4]);
        Node[] memory nodes = _demandTrace(id);
        _wait(seconds_[5]);
        bytes32[] memory hashes = LeafTree.leaves(topRoots);
        game.revealNode(id, 0, 0, _named(nodes), LeafTree.descendants(hashes, 0, 7, 4));
        uint256 solvers = uint256(seconds_[1]) + seconds_[3] + seconds_[5];
        uint256 challengers = uint256(seconds_[0]) + seconds_[2] + seconds_[4];
        _assertSpent(id, solvers, challengers);
        _wait(seconds_[6]);
        _selectSum(id);
        _wait(seconds_[7]);
        _split(id);
        _assertSpent(id, solvers + seconds_[7], challengers + seconds_[6]);
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp() + TIME - challengers - seconds_[6]);
    }

    /// @dev Time that a side did not use in one move is available for the next.
    function test_answer_laterThanAnEarlierMove_succeeds() public {
        GameId id = _challenge();
        uint256 start = vm.getBlockTimestamp();
        _wait(TIME - 1);
        _expandSteps();
        _wait(TIME - 1);
        _selectStep(id);
        assertEq(game.gameOf(id).deadline, start + 2 * TIME - 1, "one second is left to the solver");
        _wait(1);
        _expandTop();
        assertEq(game.gameOf(id).deadline, start + 2 * TIME, "and one to the challenger");
        _wait(1);
        _demandTrace(id);
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp(), "nothing is left to the solver");
        _wait(1);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.SolverSilent);
    }

    /// @dev A partial answer to a demand does not stop the clock; the last part does.
    function test_reveal_oneOfTwoNodes_clockRunsOn_succeeds() public {
        GameId id = _challenge();
        _expandSteps();
        bytes32[] memory hashes = LeafTree.leaves(steps);
        Node[] memory nodes = new Node[](2);
        (nodes[0], nodes[1]) = (_node(hashes, 4, 1)[0], _node(hashes, 0, 4)[0]);
        uint64 deadline = uint64(vm.getBlockTimestamp()) + TIME;
        _demand(id, IDisputeGame.Tree.Step, nodes);
        _wait(20);
        game.revealLeaf(id, 0, 0, _named(nodes), abi.encodePacked(steps[4]));
        assertEq(game.gameOf(id).deadline, deadline);
        _wait(20);
        game.revealNode(id, 1, 0, _named(nodes), LeafTree.descendants(hashes, 0, 4, 4));
        _assertSpent(id, 40, 0);
    }

    /// @dev The claim was posted for another game before this one requested it, so it uses none of the
    /// solver's time.
    function test_selectStep_claimIsThere_costsTheSolverNothing_succeeds() public {
        _inTop();
        _wait(30);
        GameId other = _challengeBy(second, SEGMENT);
        _wait(5);
        _selectStepBy(second, other);
        _assertSpent(other, 0, 5);
        assertEq(game.gameOf(other).deadline, vm.getBlockTimestamp() + TIME - 5, "the challenger's");
    }

    /// @dev Games played at the same time have separate clocks.
    function test_demand_inTwoGames_succeeds() public {
        GameId id = _inTop();
        GameId other = _challengeBy(second, SEGMENT);
        _wait(10);
        _demandTrace(id);
        _wait(10);
        _selectStepBy(second, other);
        _assertSpent(id, 0, 10);
        _assertSpent(other, 0, 20);
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp() - 10 + TIME);
    }

    function _wait(uint256 time) private {
        vm.warp(vm.getBlockTimestamp() + time);
    }

    function _assertSpent(GameId id, uint256 solvers, uint256 challengers) private view {
        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(g.solverSpent, solvers, "solver");
        assertEq(g.challengerSpent, challengers, "challenger");
    }

    function _demandTrace(GameId id) private returns (Node[] memory nodes) {
        IDisputeGame.ValueOpening memory opening = _none();
        opening.instruction.program = top.opening;
        nodes = _node(LeafTree.leaves(topRoots), 0, 7);
        _demandWith(id, IDisputeGame.Tree.Trace, opening, nodes);
    }
}
