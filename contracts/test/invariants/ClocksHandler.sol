// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Node} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Play} from "../dispute/Play.sol";

/// @title Drives games of one task by moves of both sides, in any order and after any delay.
/// @notice An action that is not possible does nothing; none reverts. After a conviction only coin is
/// withdrawn and moot games are closed.
contract ClocksHandler is Play {
    uint256 private constant MOST_GAMES = 20;

    /// @dev When a game was first seen being played.
    mapping(GameId => uint256) public began;
    bool public convicted;
    bool public waited;
    /// @dev Whether a game timed out while it held deposits of unanswered nodes.
    bool public returned;
    uint256 public dismissed;

    modifier action() {
        if (convicted) return;
        _;
        _book();
    }

    function setUp() public override {
        super.setUp();
        _start();
        _challenge();
        _book();
    }

    function open(uint256 seed) external action {
        if (game.games() == MOST_GAMES || vm.getBlockTimestamp() > market.taskOf(task).challengeUntil) {
            return;
        }
        if (seed % 2 == 0) _blind();
        else _challenge();
    }

    /// @notice The challenger demands the root and a leaf of the segment tree or of the step tree, at any
    /// base fee.
    function ask(uint256 seed) external action {
        (GameId id, IDisputeGame.Game memory g) = _challengersTurn(seed);
        if (GameId.unwrap(id) == 0 || g.demands == 96) return;
        if (g.phase == IDisputeGame.Phase.Segment) {
            vm.fee(seed % 1e12);
            _demand(id, IDisputeGame.Tree.Segment, _rootAndLeaf(checkpoints));
        } else if (g.phase == IDisputeGame.Phase.Step) {
            vm.fee(seed % 1e12);
            _demand(id, IDisputeGame.Tree.Step, _rootAndLeaf(steps));
        }
    }

    /// @notice The solver answers a node of a demand or splits a row.
    function answer(uint256 seed) external action {
        (GameId id, IDisputeGame.Game memory g) = _find(seed, true);
        if (GameId.unwrap(id) == 0) return;
        if (g.phase == IDisputeGame.Phase.Split) return _split(id);
        if (g.demandOpen == 0) return;
        bytes32[] memory roots = g.phase == IDisputeGame.Phase.Segment ? checkpoints : steps;
        IDisputeGame.DemandedNode[] memory nodes = _named(_rootAndLeaf(roots));
        bool leaf = g.demandOpen == 2 || (g.demandOpen == 3 && seed % 3 == 0);
        if (leaf) game.revealLeaf(id, 1, 0, nodes, abi.encodePacked(roots[1]));
        else game.revealNode(id, 0, 0, nodes, LeafTree.leaves(roots));
    }

    /// @notice The solver or the challenger withdraws its credit, even after a conviction.
    function fetch(uint256 seed) external {
        vm.prank(seed % 2 == 0 ? solver : challenger);
        game.withdrawCredit();
    }

    /// @notice After a conviction, closes one of the other games.
    function close(uint256 seed) external {
        uint256 count = game.games();
        GameId id = GameId.wrap(seed % count + 1);
        if (convicted && game.gameOf(id).phase != IDisputeGame.Phase.Closed) game.closeMoot(id);
    }

    /// @notice The challenger descends further.
    function descend(uint256 seed) external action {
        (GameId id, IDisputeGame.Game memory g) = _challengersTurn(seed);
        if (GameId.unwrap(id) == 0) return;
        if (g.phase == IDisputeGame.Phase.Segment) _selectSegment(id);
        else if (g.phase == IDisputeGame.Phase.Step) _selectStep(id);
        else if (g.phase == IDisputeGame.Phase.Frame) _selectSum(id);
    }

    /// @notice The solver posts a claim that a game asked for, in time or not.
    function claim(uint256 seed) external action {
        if (seed % 2 == 0 && _due(_stepsKey())) _expandSteps();
        else if (seed % 2 == 1 && _due(_topKey())) _expandTop();
    }

    /// @notice Anyone ends a game whose time is over.
    function lapse(uint256 seed) external action {
        (GameId id, IDisputeGame.Game memory g) = _find(seed, false);
        if (GameId.unwrap(id) == 0) return;
        game.timeOut(id);
        if (g.demandOpen != 0) returned = true;
    }

    function pass(uint256 seed) external action {
        vm.warp(vm.getBlockTimestamp() + (seed % 8 == 0 ? (seed >> 8) % TIME : (seed >> 8) % 8));
    }

    // ------------------------------------------------------------------ for the invariants

    function played() external view returns (IDisputeGame) {
        return game;
    }

    function time() external pure returns (uint256) {
        return TIME;
    }

    /// @notice Coin that the game contract owes: credits, and deposits of unanswered nodes.
    function owed() external view returns (uint256 sum) {
        sum = game.creditOf(solver) + game.creditOf(challenger);
        for (uint256 k = 1; k <= game.games(); ++k) {
            IDisputeGame.Game memory g = game.gameOf(GameId.wrap(k));
            for (uint16 bits = g.demandOpen; bits != 0; bits &= bits - 1) {
                sum += g.deposit;
            }
        }
    }

    // ------------------------------------------------------------------ inside

    function _rootAndLeaf(bytes32[] memory roots) private pure returns (Node[] memory nodes) {
        bytes32[] memory hashes = LeafTree.leaves(roots);
        nodes = new Node[](2);
        (nodes[0], nodes[1]) = (_node(hashes, 0, hashes.length)[0], _node(hashes, 1, 1)[0]);
    }

    function _due(bytes32 key) private view returns (bool) {
        IDisputeGame.Claim memory c = game.claimOf(key);
        return c.size + uint256(c.root) == 0 ? key == _topKey() && _traceWasAsked() : c.postedAt == 0;
    }

    /// @dev A trace has no size before it has callees, so only the games show whether its claim was
    /// requested.
    function _traceWasAsked() private view returns (bool) {
        for (uint256 k = 1; k <= game.games(); ++k) {
            if (game.gameOf(GameId.wrap(k)).step != 0) return true;
        }
        return false;
    }

    function _challengersTurn(uint256 seed) private view returns (GameId id, IDisputeGame.Game memory g) {
        (id, g) = _find(seed, true);
        bool waits = g.phase == IDisputeGame.Phase.Step || g.phase == IDisputeGame.Phase.Frame;
        if (g.demandOpen != 0 || g.phase == IDisputeGame.Phase.Split) return (GameId.wrap(0), g);
        if (waits && game.claimOf(g.claim).postedAt == 0) return (GameId.wrap(0), g);
    }

    /// @dev A game that is being played and is in time (or late, unless `inTime`), searched from a random
    /// game on; 0 if there is none.
    function _find(uint256 seed, bool inTime) private view returns (GameId id, IDisputeGame.Game memory g) {
        uint256 count = game.games();
        for (uint256 i; i < count; ++i) {
            id = GameId.wrap((seed % count + i) % count + 1);
            g = game.gameOf(id);
            if (g.phase == IDisputeGame.Phase.Closed || g.deadline == type(uint64).max) continue;
            if (inTime == (vm.getBlockTimestamp() <= g.deadline)) return (id, g);
        }
        return (GameId.wrap(0), g);
    }

    function _book() private {
        dismissed = 0;
        for (uint256 k = 1; k <= game.games(); ++k) {
            IDisputeGame.Game memory g = game.gameOf(GameId.wrap(k));
            if (g.verdict == IDisputeGame.Verdict.SolverSilent) convicted = true;
            if (g.verdict == IDisputeGame.Verdict.ChallengerSilent) ++dismissed;
            if (g.deadline == type(uint64).max) waited = true;
            else if (began[GameId.wrap(k)] == 0) began[GameId.wrap(k)] = vm.getBlockTimestamp();
        }
    }
}
