// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Evidence} from "../Evidence.sol";
import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {Answers} from "../libraries/Answers.sol";
import {Instructions} from "../libraries/Instructions.sol";
import {Proofs} from "../libraries/Proofs.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {Rfc9162} from "../libraries/Rfc9162.sol";
import {GameId} from "../types/Ids.sol";
import {Node} from "../types/Openings.sol";
import {GameState} from "./GameState.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Demand and reveal: a solver that withholds a tree must show its nodes here, or it loses (dispute.md
/// section 6).
/// @notice One demand is open at a time. Demands belong to the phases in which the challenger looks for a
/// difference: the segment tree in Segment, the step tree in Step; traces, values and the state after the
/// step in Frame. Each node carries a deposit in the chain's coin, which pays the solver for its answer.
abstract contract Demands is GameState {
    uint256 internal constant MAX_NODES = 16;
    /// @notice Each demand covers four levels, and the leaf takes one more. 7 demands for a segment tree of
    /// 2^20 + 1 leaves, 6 for a step tree of 2^16 + 1, 6 for each of nine traces of 2^20, and 9 for a value
    /// of 2^30 chunks make 76; the rest is for a challenger that asks twice.
    uint8 internal constant MAX_DEMANDS = 96;
    /// @notice Levels covered by one reveal.
    uint256 internal constant LEVELS = 4;

    /// @inheritdoc IDisputeGame
    function demand(
        GameId game,
        bytes32 head,
        Tree tree,
        ValueOpening calldata,
        bytes32 before,
        bytes32 afterwards,
        Node[] calldata nodes
    ) external payable override {
        Phase phase = tree == Tree.Segment ? Phase.Segment : tree == Tree.Step ? Phase.Step : Phase.Frame;
        GameRecord storage record = _challengerMove(game, head, phase);
        (bytes32 root, uint32 size, uint64 bytesTotal) = _treeOf(record, tree, before, afterwards);
        DemandedNode[] memory named = _named(root, size, nodes);
        uint8 demands = record.demands + 1;
        if (demands > MAX_DEMANDS) revert Refusals.LimitReached(MAX_DEMANDS, demands);
        record.demands = demands;
        record.demandOpen = uint16((1 << named.length) - 1);
        record.demandHash = keccak256(abi.encode(bytesTotal, named));
        uint256 deposit = _pay(bytesTotal, named);
        record.deposit = uint128(deposit);
        emit Demanded(game, tree, root, size, bytesTotal, deposit, named);
    }

    /// @inheritdoc IDisputeGame
    function revealNode(
        GameId game,
        uint8 index,
        uint64 bytesTotal,
        DemandedNode[] calldata nodes,
        bytes32[] calldata descendants
    ) external override {
        (GameRecord storage record, DemandedNode calldata node) = _demanded(game, index, bytesTotal, nodes);
        if (node.size == 1) revert Refusals.WrongKind(node.size);
        bytes32 hash = Rfc9162.foldDescendants(node.size, LEVELS, descendants);
        _answer(record, index, node.hash, hash);
        emit NodeRevealed(game, index, descendants);
    }

    /// @inheritdoc IDisputeGame
    function revealLeaf(
        GameId game,
        uint8 index,
        uint64 bytesTotal,
        DemandedNode[] calldata nodes,
        bytes calldata data
    ) external override {
        (GameRecord storage record, DemandedNode calldata node) = _demanded(game, index, bytesTotal, nodes);
        if (node.size != 1) revert Refusals.WrongKind(node.size);
        uint256 due = _leafBytes(bytesTotal, node.lo);
        if (data.length != due) revert Refusals.WrongLength(node.lo, due, data.length);
        _answer(record, index, node.hash, Rfc9162.leafHash(data));
        emit LeafRevealed(game, index, data);
    }

    /// @inheritdoc IDisputeGame
    function depositFor(uint256 count, uint256 leafBytes, uint256 baseFee)
        public
        view
        override
        returns (uint256)
    {
        return 2 * Answers.gasOf(count, leafBytes) * baseFee + DATA_FEE * Answers.bytesOf(count, leafBytes);
    }

    /// @dev Takes the deposits of a demand from the caller's credit, after adding the call's value to it.
    /// Returns the deposit of each node: the mean over all nodes, rounded up. It is paid in existing coin, so
    /// it fits 128 bits.
    function _pay(uint64 bytesTotal, DemandedNode[] memory named) private returns (uint256 each) {
        uint256 count = named.length;
        for (uint256 k; k < count; ++k) {
            uint256 leafBytes = named[k].size == 1 ? _leafBytes(bytesTotal, named[k].lo) : 0;
            each += depositFor(count, leafBytes, block.basefee);
        }
        each = Math.ceilDiv(each, count);
        uint256 given = creditOf[msg.sender] + msg.value;
        if (given < each * count) revert Refusals.DepositTooSmall(each * count, given);
        creditOf[msg.sender] = given - each * count;
    }

    /// @dev Bytes of leaf `lo` of a value of `bytesTotal` bytes, or of a tree of 32-byte leaves if that is 0.
    /// Leaf `lo` was proved to be in the tree of ceil(bytesTotal / 1024) leaves, so the subtraction does not
    /// underflow.
    function _leafBytes(uint64 bytesTotal, uint32 lo) private pure returns (uint256) {
        if (bytesTotal == 0) return 32;
        return Math.min(bytesTotal - Instructions.CHUNK_BYTES * lo, Instructions.CHUNK_BYTES);
    }

    /// @dev The tree of the demand: its root, its size, and for a value its number of bytes.
    function _treeOf(GameRecord storage record, Tree tree, bytes32 before, bytes32 afterwards)
        private
        view
        returns (bytes32 root, uint32 size, uint64 bytesTotal)
    {
        if (tree == Tree.Segment) return (record.segmentRoot, record.segmentSize, 0);
        ClaimRecord storage claim = _reached(record);
        if (tree == Tree.Step) return (claim.root, claim.size, 0);
        if (tree == Tree.State) {
            if (record.depth != 0) revert Refusals.NoStates();
            _requireStates(record, before, afterwards);
            return (afterwards, _dockets[_taskOf(record)].stateTensors, 0);
        }
        return abi.decode(_proved(Evidence.demand.selector, claim), (bytes32, uint32, uint64));
    }

    function _named(bytes32 root, uint32 size, Node[] calldata nodes)
        private
        view
        returns (DemandedNode[] memory named)
    {
        uint256 count = nodes.length;
        if (count == 0 || count > MAX_NODES) revert Refusals.LimitReached(MAX_NODES, count);
        named = new DemandedNode[](count);
        for (uint256 k; k < count; ++k) {
            Node calldata node = nodes[k];
            Proofs.requireNode(root, size, node.lo, node.size, node.hash, node.path);
            named[k] = DemandedNode(node.lo, node.size, node.hash);
        }
    }

    /// @dev A node that is not yet answered. Anyone may answer, because the hash decides.
    function _demanded(GameId game, uint8 index, uint64 bytesTotal, DemandedNode[] calldata nodes)
        private
        view
        returns (GameRecord storage record, DemandedNode calldata node)
    {
        record = _live(game);
        if (record.demandOpen >> index & 1 == 0) revert Refusals.NotDemanded(index);
        _requireSolverInTime(record);
        bytes32 hash = keccak256(abi.encode(bytesTotal, nodes));
        if (hash != record.demandHash) revert Refusals.WrongPreimage(record.demandHash, hash);
        node = nodes[index];
    }

    /// @dev Marks the node as answered and credits its deposit to the solver. After the last node it is the
    /// challenger's turn.
    function _answer(GameRecord storage record, uint8 index, bytes32 due, bytes32 given) private {
        if (given != due) revert Refusals.WrongRoot(due, given);
        uint16 open = record.demandOpen & ~uint16(1 << index);
        record.demandOpen = open;
        creditOf[MARKET.solverOf(_taskOf(record))] += record.deposit;
        if (open == 0) _solverMoved(record);
    }
}
