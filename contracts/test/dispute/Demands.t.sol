// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Opcode, TypeCode} from "../../src/types/Instruction.sol";
import {Leaf, Node} from "../../src/types/Openings.sol";
import {LeafTree} from "./LeafTree.sol";
import {Play} from "./Play.sol";
import {StepProgram} from "./StepProgram.sol";

/// @title A demand in a value of more than 2^32 bytes, of which only the last chunk exists.
contract LargeValueTest is Play {
    function test_demand_largeValue_succeeds() public {
        uint64 size = 2 ** 32 + 1024;
        bytes memory type_ = abi.encodePacked(TypeCode.F32, uint8(1), uint32(size / 4));
        bytes[] memory list = new bytes[](2);
        list[0] = StepProgram.instruction(Opcode.CONSTANT, 0, "", type_, hex"00000000");
        list[1] = StepProgram.output(1, StepProgram.operand(0, type_), 0);
        top = StepProgram.program(list, 1);
        topValues = new bytes[](1);
        topValues[0] = new bytes(1024);
        _start();
        // The tree of 2^22 + 1 chunks splits before the last one.
        Node[] memory nodes = new Node[](1);
        nodes[0] = Node(1 << 22, 1, LeafTree.leaf(topValues[0]), new bytes32[](1));
        nodes[0].path[0] = keccak256("the other chunks");
        topRoots[0] = sha256(abi.encodePacked(bytes1(0x01), nodes[0].path[0], nodes[0].hash));
        GameId id = _inTop();
        IDisputeGame.ValueOpening memory opening;
        (opening.instruction, opening.value) = (_open(top, 0), _leaf(topRoots, 0));
        vm.expectEmit(address(game));
        emit IDisputeGame.Demanded(
            id, IDisputeGame.Tree.Value, topRoots[0], (1 << 22) + 1, size, 0, _named(nodes)
        );
        _demandWith(id, IDisputeGame.Tree.Value, opening, nodes);
        game.revealLeaf(id, 0, size, _named(nodes), topValues[0]);
    }
}

/// @title Demand and reveal: which nodes may be named, what answers them, and that a walk finds any single
/// differing leaf.
contract DemandsTest is Play {
    function setUp() public override {
        super.setUp();
        _start();
    }

    // ------------------------------------------------------------------ what may be named

    function test_demand_recordsNodes_succeeds() public {
        GameId id = _inTop();
        bytes32[] memory hashes = LeafTree.leaves(topRoots);
        Node[] memory nodes = new Node[](2);
        (nodes[0], nodes[1]) = (_node(hashes, 4, 3)[0], _node(hashes, 3, 1)[0]);
        bytes32 root = LeafTree.root(hashes);
        vm.expectEmit(address(game));
        emit IDisputeGame.Demanded(id, IDisputeGame.Tree.Trace, root, 7, 0, 0, _named(nodes));
        _demandWith(id, IDisputeGame.Tree.Trace, _ofProgram(), nodes);
        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(g.demandOpen, 3);
        assertEq(g.demands, 1);
        assertEq(g.demandHash, keccak256(abi.encode(uint64(0), _named(nodes))));
        assertEq(g.deadline, vm.getBlockTimestamp() + TIME);
    }

    function test_demand_whileOneIsOpen_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        Node[] memory nodes = _node(LeafTree.leaves(steps), 0, 5);
        _demand(id, IDisputeGame.Tree.Step, nodes);
        _demandReverts(
            id, IDisputeGame.Tree.Step, _none(), nodes, abi.encodeWithSelector(Refusals.NotYourTurn.selector)
        );
    }

    function test_demand_treeOfAnotherPhase_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        Node[] memory nodes = _node(LeafTree.leaves(steps), 0, 5);
        IDisputeGame.Tree[2] memory trees = [IDisputeGame.Tree.Segment, IDisputeGame.Tree.Trace];
        IDisputeGame.Phase[2] memory due = [IDisputeGame.Phase.Segment, IDisputeGame.Phase.Frame];
        for (uint256 k; k < 2; ++k) {
            _demandReverts(
                id,
                trees[k],
                _none(),
                nodes,
                abi.encodeWithSelector(Refusals.WrongPhase.selector, due[k], IDisputeGame.Phase.Step)
            );
        }
    }

    function test_demand_noNode_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        uint256[2] memory counts = [uint256(0), 17];
        for (uint256 k; k < 2; ++k) {
            _demandReverts(
                id,
                IDisputeGame.Tree.Step,
                _none(),
                new Node[](counts[k]),
                abi.encodeWithSelector(Refusals.LimitReached.selector, 16, counts[k])
            );
        }
    }

    function test_demand_sixteenNodes_succeeds() public {
        GameId id = _inTop();
        IDisputeGame.ValueOpening memory opening;
        (opening.instruction, opening.value) = (_open(top, 4), _leaf(topRoots, 4));
        bytes32[] memory hashes = LeafTree.chunks(topValues[4]);
        Node[] memory nodes = new Node[](16);
        for (uint256 k; k < 16; ++k) {
            nodes[k] = _node(hashes, 8 * k, 8)[0];
        }
        _demandWith(id, IDisputeGame.Tree.Value, opening, nodes);
        assertEq(game.gameOf(id).demandOpen, type(uint16).max);
    }

    function test_demand_nodeNotInTree_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        Node[] memory nodes = _node(LeafTree.leaves(steps), 0, 4);
        nodes[0].hash = keccak256("another");
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.demand(id, head, IDisputeGame.Tree.Step, _none(), 0, 0, nodes);
    }

    function test_demand_leavesThatAreNoNode_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        Node[] memory nodes = _node(LeafTree.leaves(steps), 0, 4);
        (nodes[0].lo, nodes[0].size) = (1, 2);
        _demandReverts(
            id,
            IDisputeGame.Tree.Step,
            _none(),
            nodes,
            abi.encodeWithSelector(Rfc9162.NotANode.selector, 5, 1, 2)
        );
    }

    function test_demand_stateOfAnotherStep_reverts() public {
        GameId id = _inTop();
        Node[] memory nodes = _node(LeafTree.leaves(StepProgram.roots(afterTensors)), 0, 2);
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongContext.selector);
        game.demand(id, head, IDisputeGame.Tree.State, _none(), steps[1], steps[2], nodes);
    }

    function test_demand_valueOfAnotherLeaf_reverts() public {
        GameId id = _inTop();
        IDisputeGame.ValueOpening memory opening;
        opening.instruction = _open(top, 0);
        opening.value = _leaf(topRoots, 1);
        bytes32 head = _head(id);
        Node[] memory nodes = _node(LeafTree.chunks(topValues[0]), 0, 2);
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.demand(id, head, IDisputeGame.Tree.Value, opening, 0, 0, nodes);
    }

    /// @dev A value that the solver never stated, with nodes of its tree: nobody could reveal them.
    function test_demand_inventedValue_reverts() public {
        GameId id = _inTop();
        bytes32[] memory invented = LeafTree.chunks(StepProgram.floats(0x00002041));
        IDisputeGame.ValueOpening memory opening;
        opening.instruction = _open(top, 0);
        opening.value = Leaf(LeafTree.root(invented), _leaf(topRoots, 0).path);
        bytes32[] memory other = topRoots;
        bytes32 root = LeafTree.root(LeafTree.leaves(other));
        other[0] = opening.value.value;
        bytes32 computed = LeafTree.root(LeafTree.leaves(other));
        _demandReverts(
            id,
            IDisputeGame.Tree.Value,
            opening,
            _node(invented, 0, 2),
            abi.encodeWithSelector(Refusals.WrongRoot.selector, root, computed)
        );
    }

    function test_demand_valueOfOutput_reverts() public {
        GameId id = _inTop();
        IDisputeGame.ValueOpening memory opening;
        opening.instruction = _open(top, 7);
        _demandReverts(
            id,
            IDisputeGame.Tree.Value,
            opening,
            _node(LeafTree.chunks(topValues[0]), 0, 2),
            abi.encodeWithSelector(Refusals.Malformed.selector)
        );
    }

    function test_demand_tooMany_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        Node[] memory nodes = _node(LeafTree.leaves(steps), 0, 1);
        for (uint256 k; k < 96; ++k) {
            _demand(id, IDisputeGame.Tree.Step, nodes);
            game.revealLeaf(id, 0, 0, _named(nodes), abi.encodePacked(steps[0]));
        }
        _demandReverts(
            id,
            IDisputeGame.Tree.Step,
            _none(),
            nodes,
            abi.encodeWithSelector(Refusals.LimitReached.selector, 96, 97)
        );
        _selectStep(id);
    }

    // ------------------------------------------------------------------ answers

    function test_reveal_eachNodeOnce_succeeds() public {
        GameId id = _challenge();
        _expandSteps();
        bytes32[] memory hashes = LeafTree.leaves(steps);
        Node[] memory nodes = new Node[](3);
        (nodes[0], nodes[1], nodes[2]) =
        (_node(hashes, 4, 1)[0], _node(hashes, 0, 4)[0], _node(hashes, 2, 2)[0]);
        IDisputeGame.DemandedNode[] memory named = _named(nodes);
        _demand(id, IDisputeGame.Tree.Step, nodes);
        vm.warp(vm.getBlockTimestamp() + 10);
        // Anyone may answer, in any order.
        bytes32[] memory four = LeafTree.descendants(hashes, 0, 4, 4);
        bytes32[] memory two = LeafTree.descendants(hashes, 2, 2, 4);
        vm.startPrank(anyone);
        vm.expectEmit(address(game));
        emit IDisputeGame.NodeRevealed(id, 1, four);
        game.revealNode(id, 1, 0, named, four);
        assertEq(game.gameOf(id).demandOpen, 5);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotDemanded.selector, 1));
        game.revealNode(id, 1, 0, named, four);
        vm.expectEmit(address(game));
        emit IDisputeGame.LeafRevealed(id, 0, abi.encodePacked(steps[4]));
        game.revealLeaf(id, 0, 0, named, abi.encodePacked(steps[4]));
        game.revealNode(id, 2, 0, named, two);
        vm.stopPrank();
        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(g.demandOpen, 0);
        assertEq(g.deadline, vm.getBlockTimestamp() + TIME);
        _selectStep(id);
    }

    function test_reveal_notDemanded_reverts() public {
        (GameId id, Node[] memory nodes) = _demandedSteps(0, 5);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotDemanded.selector, 1));
        game.revealLeaf(id, 1, 0, _named(nodes), "");
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotDemanded.selector, 255));
        game.revealLeaf(id, 255, 0, _named(nodes), "");
    }

    function test_reveal_otherPreimage_reverts() public {
        (GameId id, Node[] memory nodes) = _demandedSteps(0, 5);
        IDisputeGame.DemandedNode[] memory named = _named(nodes);
        named[0].size = 4;
        vm.expectPartialRevert(Refusals.WrongPreimage.selector);
        game.revealNode(id, 0, 0, named, new bytes32[](4));
        vm.expectPartialRevert(Refusals.WrongPreimage.selector);
        game.revealNode(id, 0, 5000, _named(nodes), new bytes32[](5));
    }

    function test_reveal_late_reverts() public {
        (GameId id, Node[] memory nodes) = _demandedSteps(0, 5);
        uint64 deadline = game.gameOf(id).deadline;
        bytes32[] memory answer = LeafTree.descendants(LeafTree.leaves(steps), 0, 5, 4);
        vm.warp(deadline + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, deadline, deadline + 1));
        game.revealNode(id, 0, 0, _named(nodes), answer);
    }

    function test_revealNode_falseDescendants_reverts() public {
        (GameId id, Node[] memory nodes) = _demandedSteps(0, 5);
        bytes32[] memory answer = LeafTree.descendants(LeafTree.leaves(steps), 0, 5, 4);
        answer[3] = keccak256("another");
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.revealNode(id, 0, 0, _named(nodes), answer);
        vm.expectRevert(abi.encodeWithSelector(Rfc9162.ProofLength.selector, 5, 4));
        game.revealNode(id, 0, 0, _named(nodes), new bytes32[](4));
    }

    /// @dev Attack 30: an inner node's preimage does not count as a leaf, nor a leaf's data as a list of
    /// descendants.
    function test_reveal_wrongKind_reverts() public {
        (GameId id, Node[] memory nodes) = _demandedSteps(0, 2);
        bytes32[] memory hashes = LeafTree.leaves(steps);
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongKind.selector, 2));
        game.revealLeaf(id, 0, 0, _named(nodes), abi.encodePacked(bytes1(0x01), hashes[0], hashes[1]));
        (id, nodes) = _demandedSteps(0, 1);
        bytes32[] memory itself = new bytes32[](1);
        itself[0] = hashes[0];
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongKind.selector, 1));
        game.revealNode(id, 0, 0, _named(nodes), itself);
    }

    function test_revealLeaf_falseData_reverts() public {
        (GameId id, Node[] memory nodes) = _demandedSteps(1, 1);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.revealLeaf(id, 0, 0, _named(nodes), abi.encodePacked(keccak256("another")));
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongLength.selector, 1, 32, 33));
        game.revealLeaf(id, 0, 0, _named(nodes), abi.encodePacked(steps[1], uint8(0)));
    }

    /// @dev A posted root over a leaf of 31 bytes: the solver cannot answer a demand for that leaf, because
    /// it must have 32.
    function test_revealLeaf_rootOverShortLeaf_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        _selectStep(id);
        bytes memory short = new bytes(31);
        bytes32[] memory hashes = new bytes32[](7);
        hashes[0] = LeafTree.leaf(short);
        bytes32 root = LeafTree.root(hashes);
        vm.prank(solver);
        game.expandTrace(_topKey(), root);
        Node[] memory nodes = _node(hashes, 0, 1);
        _demandWith(id, IDisputeGame.Tree.Trace, _ofProgram(), nodes);
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongLength.selector, 0, 32, 31));
        game.revealLeaf(id, 0, 0, _named(nodes), short);
    }

    function test_reveal_valueAndState_succeeds() public {
        GameId id = _inTop();
        IDisputeGame.ValueOpening memory opening;
        opening.instruction = _open(top, 3);
        opening.value = _leaf(topRoots, 3);
        bytes32[] memory hashes = LeafTree.chunks(topValues[3]);
        Node[] memory nodes = new Node[](2);
        (nodes[0], nodes[1]) = (_node(hashes, 0, 2)[0], _node(hashes, 1, 1)[0]);
        _demandWith(id, IDisputeGame.Tree.Value, opening, nodes);
        game.revealNode(id, 0, 1200, _named(nodes), hashes);
        bytes memory chunk = LeafTree.chunk(topValues[3], 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongLength.selector, 1, 176, 1024));
        game.revealLeaf(id, 1, 1200, _named(nodes), new bytes(1024));
        game.revealLeaf(id, 1, 1200, _named(nodes), chunk);

        bytes32[] memory tensors = StepProgram.roots(afterTensors);
        nodes = _node(LeafTree.leaves(tensors), 1, 1);
        _demand(id, IDisputeGame.Tree.State, nodes);
        game.revealLeaf(id, 0, 0, _named(nodes), abi.encodePacked(tensors[1]));
        assertEq(game.gameOf(id).demandOpen, 0);
    }

    // ------------------------------------------------------------------ walks

    /// @dev The solver serves nothing. On every tree of 2 to 9 leaves demands find any single differing leaf
    /// after the first, and the game continues from there.
    function test_walk_everySingleDifference_isFound_succeeds() public {
        for (uint256 size = 2; size <= 9; ++size) {
            for (uint256 wrong = 1; wrong < size; ++wrong) {
                _walk(size, wrong);
            }
        }
    }

    function test_walk_deepTree_isFound_succeeds() public {
        _walk(40, 39);
        _walk(40, 17);
    }

    function _walk(uint256 size, uint256 wrong) private {
        bytes32[] memory own = new bytes32[](size);
        checkpoints = new bytes32[](size);
        for (uint256 k; k < size; ++k) {
            own[k] = keccak256(abi.encode("state", k));
            checkpoints[k] = k == wrong ? keccak256("wrong") : own[k];
        }
        task = _submitted(top.id, keccak256("constants"), checkpoints);
        steps[0] = checkpoints[0];
        GameId id = _blind();
        uint256 lo = _walkDown(id, LeafTree.leaves(checkpoints), LeafTree.leaves(own));
        assertEq(lo, wrong, "found");
        bytes32 head = _head(id);
        Leaf memory first = _leaf(checkpoints, lo - 1);
        Leaf memory last = _leaf(checkpoints, lo);
        vm.prank(challenger);
        game.selectSegment(id, head, SegmentIndex.wrap(uint32(lo)), first, last);
        assertEq(_phase(id), uint256(IDisputeGame.Phase.Step));
        assertEq(first.value, own[lo - 1], "all before agrees");
    }

    /// @dev Demands the first differing node of each reveal, down to the leaf.
    function _walkDown(GameId id, bytes32[] memory theirs, bytes32[] memory own)
        private
        returns (uint256 lo)
    {
        uint256 size = theirs.length;
        while (size > 1) {
            Node[] memory nodes = _node(theirs, lo, size);
            _demand(id, IDisputeGame.Tree.Segment, nodes);
            game.revealNode(id, 0, 0, _named(nodes), LeafTree.descendants(theirs, lo, size, 4));
            (lo, size) = LeafTree.firstDifference(theirs, own, lo, size, 4);
        }
        Node[] memory leaf = _node(theirs, lo, 1);
        _demand(id, IDisputeGame.Tree.Segment, leaf);
        game.revealLeaf(id, 0, 0, _named(leaf), abi.encodePacked(checkpoints[lo]));
    }

    // ------------------------------------------------------------------ parts

    function _ofProgram() private view returns (IDisputeGame.ValueOpening memory opening) {
        opening.instruction.program = top.opening;
    }

    /// @dev A game with a demand for one node of the step tree.
    function _demandedSteps(uint256 lo, uint256 size) private returns (GameId id, Node[] memory nodes) {
        id = _challengeBy(challenger, SEGMENT);
        if (game.claimOf(_stepsKey()).postedAt == 0) _expandSteps();
        nodes = _node(LeafTree.leaves(steps), lo, size);
        _demand(id, IDisputeGame.Tree.Step, nodes);
    }

    function _demandReverts(
        GameId id,
        IDisputeGame.Tree tree,
        IDisputeGame.ValueOpening memory opening,
        Node[] memory nodes,
        bytes memory reason
    ) private {
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectRevert(reason);
        game.demand(id, head, tree, opening, steps[0], steps[1], nodes);
    }
}
