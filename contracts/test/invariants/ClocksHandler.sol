// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Node} from "../../src/types/Openings.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Play} from "../dispute/Play.sol";

/// @title Drives games of one task by moves of both sides, in any order and after any time.
/// @notice An action that nothing is ready for does nothing; none reverts. After a conviction nothing happens any more.
contract ClocksHandler is Play {
    uint256 private constant MOST_GAMES = 20;

    /// @dev When a game was first seen played.
    mapping(GameId => uint256) public began;
    bool public convicted;
    bool public waited;
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

    /// @notice The challenger demands the root of its tree.
    function ask(uint256 seed) external action {
        (GameId id, IDisputeGame.Game memory g) = _challengersTurn(seed);
        if (GameId.unwrap(id) == 0 || g.demands == 96) return;
        if (g.phase == IDisputeGame.Phase.Segment) {
            _demand(id, IDisputeGame.Tree.Segment, _node(LeafTree.leaves(checkpoints), 0, 4));
        } else if (g.phase == IDisputeGame.Phase.Step) {
            _demand(id, IDisputeGame.Tree.Step, _node(LeafTree.leaves(steps), 0, 5));
        }
    }

    /// @notice The solver answers a demand or splits a row.
    function answer(uint256 seed) external action {
        (GameId id, IDisputeGame.Game memory g) = _find(seed, true);
        if (GameId.unwrap(id) == 0) return;
        if (g.phase == IDisputeGame.Phase.Split) return _split(id);
        if (g.demandOpen == 0) return;
        bool segment = g.phase == IDisputeGame.Phase.Segment;
        bytes32[] memory hashes = LeafTree.leaves(segment ? checkpoints : steps);
        Node[] memory nodes = _node(hashes, 0, hashes.length);
        game.revealNode(id, 0, 0, _named(nodes), hashes);
    }

    /// @notice The challenger goes on.
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
        (GameId id,) = _find(seed, false);
        if (GameId.unwrap(id) != 0) game.timeOut(id);
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

    // ------------------------------------------------------------------ inside

    function _due(bytes32 key) private view returns (bool) {
        IDisputeGame.Claim memory c = game.claimOf(key);
        return c.size + uint256(c.root) == 0 ? key == _topKey() && _traceWasAsked() : c.postedAt == 0;
    }

    /// @dev A trace has no size before it has callees, so its claim shows in the games alone.
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

    /// @dev A game that is played, in time or late, searched from a random one on; 0 if there is none.
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
