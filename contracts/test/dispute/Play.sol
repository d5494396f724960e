// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Proofs} from "../../src/libraries/Proofs.sol";
import {GameId, SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf, Node} from "../../src/types/Openings.sol";
import {Deployed} from "./Deployed.sol";
import {LeafTree} from "./LeafTree.sol";
import {StepProgram} from "./StepProgram.sol";

/// @title A submitted task of StepProgram, the solver's claims about step 1 of segment 2, and the moves of
/// both sides.
/// @notice The claims are honest unless a test changes `topValues`, `calleeValues`, `before` or
/// `afterTensors` before `_start`. Checkpoint r_1 is the state before the step and s_1 the state after it;
/// all other checkpoints and states are arbitrary.
abstract contract Play is Deployed {
    SegmentIndex internal constant SEGMENT = SegmentIndex.wrap(2);
    uint32 internal constant STEP = 1;

    StepProgram.Program internal top;
    StepProgram.Program internal callee;
    bytes[] internal topValues;
    bytes[] internal calleeValues;
    bytes[] internal before;
    bytes[] internal afterTensors;
    bytes[] internal constants;

    TaskId internal task;
    bytes32[] internal checkpoints;
    bytes32[] internal steps;
    bytes32[] internal topRoots;
    bytes32[] internal calleeRoots;

    function setUp() public virtual override {
        super.setUp();
        top = StepProgram.top();
        callee = StepProgram.callee();
        topValues = StepProgram.topValues();
        calleeValues = StepProgram.calleeValues();
        before = [topValues[0], topValues[1]];
        afterTensors = [topValues[3], topValues[6]];
        constants = [topValues[2], StepProgram.integer(7), StepProgram.integer(8)];
    }

    /// @dev Fixes the solver's claims, and submits and draws the task.
    function _start() internal {
        topRoots = StepProgram.roots(topValues);
        calleeRoots = StepProgram.roots(calleeValues);
        steps = [_stateBefore(), _stateAfter(), keccak256("s2"), keccak256("s3"), keccak256("s4")];
        checkpoints = [keccak256("r0"), steps[0], steps[4], keccak256("r3")];
        task = _submitted(top.id, LeafTree.root(LeafTree.leaves(StepProgram.roots(constants))), checkpoints);
    }

    function _stateBefore() internal view returns (bytes32) {
        return LeafTree.root(LeafTree.leaves(StepProgram.roots(before)));
    }

    function _stateAfter() internal view returns (bytes32) {
        return LeafTree.root(LeafTree.leaves(StepProgram.roots(afterTensors)));
    }

    // ------------------------------------------------------------------ the way down

    function _challenge() internal returns (GameId id) {
        return _challengeBy(challenger, SEGMENT);
    }

    function _challengeBy(address who, SegmentIndex segment) internal returns (GameId id) {
        bytes32 salt = _commit(task, segment, who);
        (Leaf memory first, Leaf memory last) = _around(segment);
        vm.prank(who);
        return game.challenge(task, segment, salt, first, last);
    }

    /// @dev The checkpoints around a segment.
    function _around(SegmentIndex segment) internal view returns (Leaf memory first, Leaf memory last) {
        uint32 number = SegmentIndex.unwrap(segment);
        return (_leaf(checkpoints, number - 1), _leaf(checkpoints, number));
    }

    function _blind() internal returns (GameId id) {
        bytes32 salt = _commit(task, UNKNOWN, challenger);
        vm.prank(challenger);
        return game.challengeBlind(task, salt);
    }

    function _selectSegment(GameId id) internal {
        bytes32 head = _head(id);
        (Leaf memory first, Leaf memory last) = _around(SEGMENT);
        vm.prank(challenger);
        game.selectSegment(id, head, SEGMENT, first, last);
    }

    function _expandSteps() internal {
        bytes32 root = LeafTree.root(LeafTree.leaves(steps));
        Leaf memory first = _leaf(steps, 0);
        Leaf memory last = _leaf(steps, STEPS);
        vm.prank(solver);
        game.expandSteps(task, SEGMENT, root, first, last);
    }

    function _selectStep(GameId id) internal {
        _selectStepBy(challenger, id);
    }

    function _selectStepBy(address who, GameId id) internal {
        bytes32 head = _head(id);
        Leaf memory first = _leaf(steps, STEP - 1);
        Leaf memory last = _leaf(steps, STEP);
        vm.prank(who);
        game.selectStep(id, head, STEP, first, last);
    }

    function _expandTop() internal {
        _expandTrace(_topKey(), topRoots);
    }

    function _selectCall(GameId id) internal {
        bytes32 head = _head(id);
        InstructionOpening memory call = _open(top, 3);
        vm.prank(challenger);
        game.selectCall(id, head, call);
    }

    function _expandCallee() internal {
        _expandTrace(Proofs.calleeKey(_topKey(), keccak256(top.instructions[3])), calleeRoots);
    }

    function _expandTrace(bytes32 key, bytes32[] memory roots) internal {
        bytes32 root = LeafTree.root(LeafTree.leaves(roots));
        vm.prank(solver);
        game.expandTrace(key, root);
    }

    /// @dev A game in the top frame, with its trace posted.
    function _inTop() internal returns (GameId id) {
        id = _challenge();
        _expandSteps();
        _selectStep(id);
        _expandTop();
    }

    /// @dev A game in the callee's frame, with its trace posted.
    function _inCallee() internal returns (GameId id) {
        id = _inTop();
        _selectCall(id);
        _expandCallee();
    }

    // ------------------------------------------------------------------ demands

    function _none() internal pure returns (IDisputeGame.ValueOpening memory opening) {}

    function _node(bytes32[] memory hashes, uint256 lo, uint256 size)
        internal
        pure
        returns (Node[] memory nodes)
    {
        nodes = new Node[](1);
        nodes[0] =
            Node(uint32(lo), uint32(size), LeafTree.node(hashes, lo, size), LeafTree.path(hashes, lo, size));
    }

    function _demand(GameId id, IDisputeGame.Tree tree, Node[] memory nodes) internal {
        _demandWith(id, tree, _none(), nodes);
    }

    function _demandWith(
        GameId id,
        IDisputeGame.Tree tree,
        IDisputeGame.ValueOpening memory opening,
        Node[] memory nodes
    ) internal {
        bytes32 head = _head(id);
        // At least the amount due; the rest stays the challenger's credit.
        uint256 value = nodes.length * game.depositFor(nodes.length, 1024, block.basefee);
        vm.deal(challenger, value);
        vm.prank(challenger);
        game.demand{value: value}(id, head, tree, opening, steps[STEP - 1], steps[STEP], nodes);
    }

    function _named(Node[] memory nodes) internal pure returns (IDisputeGame.DemandedNode[] memory named) {
        named = new IDisputeGame.DemandedNode[](nodes.length);
        for (uint256 k; k < nodes.length; ++k) {
            named[k] = IDisputeGame.DemandedNode(nodes[k].lo, nodes[k].size, nodes[k].hash);
        }
    }

    // ------------------------------------------------------------------ the split of the top's sum

    function _selectSum(GameId id) internal {
        bytes32 head = _head(id);
        InstructionOpening memory sum = _open(top, 5);
        Leaf memory value = _leaf(topRoots, 5);
        ChunkOpening memory claimed = _chunk(0, topValues[5], 0);
        vm.prank(challenger);
        game.selectElement(id, head, sum, 0, value, claimed);
    }

    /// @dev 129 blocks of 128 ones: a word for the first 128 blocks and one for the last block.
    function _split(GameId id) internal {
        bytes32 head = _head(id);
        bytes memory sum = top.instructions[5];
        uint64[] memory words = new uint64[](2);
        (words[0], words[1]) = (128 * 128, 128);
        vm.prank(solver);
        game.split(
            id, head, sum, IDisputeGame.Selection(keccak256(sum), 0, 0, 129, 129 * 128, true, 0), words
        );
    }

    // ------------------------------------------------------------------ openings

    function _open(StepProgram.Program memory p, uint32 number)
        internal
        pure
        returns (InstructionOpening memory)
    {
        return StepProgram.open(p, number);
    }

    function _chunk(uint8 operand, bytes memory value, uint32 index)
        internal
        pure
        returns (ChunkOpening memory)
    {
        return StepProgram.chunk(operand, value, index);
    }

    function _topKey() internal view returns (bytes32) {
        return Proofs.traceKey(task, SEGMENT, STEP, steps[STEP - 1], steps[STEP]);
    }

    function _stepsKey() internal view returns (bytes32) {
        return Proofs.stepsKey(task, SEGMENT);
    }

    function _phase(GameId id) internal view returns (uint256) {
        return uint256(game.gameOf(id).phase);
    }

    function _assertVerdict(GameId id, IDisputeGame.Verdict verdict) internal view {
        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(uint256(g.verdict), uint256(verdict), "verdict");
        assertEq(uint256(g.phase), uint256(IDisputeGame.Phase.Closed), "phase");
        assertEq(g.bond, 0, "bond");
        assertEq(g.deadline, 0, "nobody has the turn");
    }
}
