// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId, SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf, Node} from "../../src/types/Openings.sol";
import {Deployed} from "../dispute/Deployed.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Play} from "../dispute/Play.sol";

/// @title Many games at once against one honest solver: each of its moves that needs a replay has a clock of its own.
contract ManySegmentsTest is Deployed {
    uint32 private constant SEGMENTS = 40;

    /// @dev Bonds come back once the solver is late, so the number of games is not the attacker's loss.
    function test_challenge_fortySegmentsAtOnce_succeeds() public {
        bytes32[] memory checkpoints = new bytes32[](SEGMENTS + 1);
        for (uint256 k; k <= SEGMENTS; ++k) {
            checkpoints[k] = keccak256(abi.encode("r", k));
        }
        TaskId task = _submitted(keccak256("program"), keccak256("constants"), checkpoints);
        bytes32[] memory salts = new bytes32[](SEGMENTS);
        for (uint32 i; i < SEGMENTS; ++i) {
            salts[i] = _commit(task, SegmentIndex.wrap(i + 1), challenger);
        }
        for (uint32 i; i < SEGMENTS; ++i) {
            (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, i), _leaf(checkpoints, i + 1));
            vm.prank(challenger);
            GameId id = game.challenge(task, SegmentIndex.wrap(i + 1), salts[i], first, last);
            assertEq(game.gameOf(id).deadline, block.timestamp + (i + 1) * SOLVER_CLOCK);
        }
    }
}

/// @title Demands and splits in several games wait for each other as claims do.
contract DemandFloodTest is Play {
    GameId private first;
    GameId private other;

    function setUp() public override {
        super.setUp();
        _start();
        first = _inTop();
        other = _challengeBy(second, SEGMENT);
        _selectStepBy(second, other);
    }

    function test_demand_inTwoGames_succeeds() public {
        uint256 start = vm.getBlockTimestamp();
        _demandTrace(challenger, first);
        _demandTrace(second, other);
        assertEq(game.gameOf(first).deadline, start + SOLVER_CLOCK);
        assertEq(game.gameOf(other).deadline, start + 2 * SOLVER_CLOCK);
        _reveal(first);
        _reveal(other);
        // Nothing waits any more.
        _demandTrace(challenger, first);
        assertEq(game.gameOf(first).deadline, start + SOLVER_CLOCK);
    }

    function test_selectElement_whileDemandOpen_succeeds() public {
        uint256 start = vm.getBlockTimestamp();
        _demandTrace(challenger, first);
        bytes32 head = _head(other);
        InstructionOpening memory sum = _open(top, 5);
        Leaf memory value = _leaf(topRoots, 5);
        ChunkOpening memory claimed = _chunk(0, topValues[5], 0);
        vm.prank(second);
        game.selectElement(other, head, sum, 0, value, claimed);
        assertEq(game.gameOf(other).deadline, start + 2 * SOLVER_CLOCK);
        _reveal(first);
        _split();
        _demandTrace(challenger, first);
        assertEq(game.gameOf(first).deadline, start + SOLVER_CLOCK);
    }

    function _demandTrace(address who, GameId id) private {
        IDisputeGame.ValueOpening memory opening = _none();
        opening.instruction.program = top.opening;
        Node[] memory nodes = _node(LeafTree.leaves(topRoots), 0, 7);
        bytes32 head = _head(id);
        vm.prank(who);
        game.demand(id, head, IDisputeGame.Tree.Trace, opening, 0, 0, nodes);
    }

    function _reveal(GameId id) private {
        bytes32[] memory hashes = LeafTree.leaves(topRoots);
        IDisputeGame.DemandedNode[] memory named = _named(_node(hashes, 0, 7));
        game.revealNode(id, 0, 0, named, LeafTree.descendants(hashes, 0, 7, 4));
    }

    /// @dev 129 blocks of 128 ones: a word for the first 128 and one for the last.
    function _split() private {
        bytes32 head = _head(other);
        bytes memory sum = top.instructions[5];
        uint64[] memory words = new uint64[](2);
        (words[0], words[1]) = (128 * 128, 128);
        vm.prank(solver);
        game.split(
            other, head, sum, IDisputeGame.Selection(keccak256(sum), 0, 0, 129, 129 * 128, true, 0), words
        );
    }
}
