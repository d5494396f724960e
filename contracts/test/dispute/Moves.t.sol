// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Proofs} from "../../src/libraries/Proofs.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {InstructionOpening, Leaf, Node} from "../../src/types/Openings.sol";
import {LeafTree} from "./LeafTree.sol";
import {Play} from "./Play.sol";
import {StepProgram} from "./StepProgram.sol";

/// @title The order of moves: who may move, when, in which phase, for which state of the game; and how deep
/// calls may nest.
contract MovesTest is Play {
    function setUp() public override {
        super.setUp();
        _start();
    }

    // ------------------------------------------------------------------ heads

    /// @dev The head identifies the state: it changes with each claim reached, each claim posted, and each
    /// move.
    function test_head_namesTheState_succeeds() public {
        GameId id = _challenge();
        assertEq(_head(id), _due(id, 0, _stepsKey(), 0));
        _expandSteps();
        assertEq(_head(id), _due(id, 0, _stepsKey(), LeafTree.root(LeafTree.leaves(steps))));
        _selectStep(id);
        assertEq(_head(id), _due(id, 1, _topKey(), 0));
        _expandTop();
        bytes32 root = LeafTree.root(LeafTree.leaves(topRoots));
        assertEq(_head(id), _due(id, 1, _topKey(), root));
        Node[] memory nodes = _node(LeafTree.leaves(topRoots), 0, 7);
        IDisputeGame.ValueOpening memory opening;
        opening.instruction.program = top.opening;
        _demandWith(id, IDisputeGame.Tree.Trace, opening, nodes);
        assertEq(_head(id), _due(id, 2, _topKey(), root));
    }

    function _due(GameId id, uint256 moves, bytes32 key, bytes32 root) private view returns (bytes32) {
        return keccak256(abi.encode(id, task, challenger, moves, key, root, bytes32(0)));
    }

    function test_move_wrongHead_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        bytes32 head = _head(id);
        _stepReverts(
            challenger,
            id,
            keccak256("re-organised"),
            abi.encodeWithSelector(Refusals.WrongHead.selector, head, keccak256("re-organised"))
        );
    }

    /// @dev Attack 28: the same move twice.
    function test_move_twice_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        bytes32 head = _head(id);
        _selectStep(id);
        _expandTop();
        _stepReverts(
            challenger,
            id,
            head,
            abi.encodeWithSelector(
                Refusals.WrongPhase.selector, IDisputeGame.Phase.Step, IDisputeGame.Phase.Frame
            )
        );
    }

    // ------------------------------------------------------------------ who and when

    function test_move_bySomeoneElse_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        _stepReverts(
            solver, id, _head(id), abi.encodeWithSelector(Refusals.NotAllowed.selector, challenger, solver)
        );
    }

    function test_move_beforeTheClaim_reverts() public {
        GameId id = _challenge();
        _stepReverts(challenger, id, _head(id), abi.encodeWithSelector(Refusals.NotYourTurn.selector));
    }

    function test_move_late_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        uint64 deadline = game.gameOf(id).deadline;
        vm.warp(deadline + 1);
        _stepReverts(
            challenger,
            id,
            _head(id),
            abi.encodeWithSelector(Refusals.TooLate.selector, deadline, deadline + 1)
        );
    }

    function test_move_unknownGame_reverts() public {
        _stepReverts(challenger, GameId.wrap(1), 0, abi.encodeWithSelector(Refusals.NoSuchGame.selector, 1));
    }

    /// @dev Attack 27: a move after the end.
    function test_move_afterTheEnd_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        _stepReverts(
            challenger,
            id,
            _head(id),
            abi.encodeWithSelector(Refusals.GameIsClosed.selector, id, IDisputeGame.Verdict.ChallengerSilent)
        );
    }

    // ------------------------------------------------------------------ phases

    function test_selectSegment_inStep_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        bytes32 head = _head(id);
        (Leaf memory first, Leaf memory last) = (_leaf(checkpoints, 1), _leaf(checkpoints, 2));
        vm.prank(challenger);
        vm.expectRevert(_wrongPhase(IDisputeGame.Phase.Segment, IDisputeGame.Phase.Step));
        game.selectSegment(id, head, SEGMENT, first, last);
    }

    function test_selectStep_inSegment_reverts() public {
        GameId id = _blind();
        _stepReverts(
            challenger, id, _head(id), _wrongPhase(IDisputeGame.Phase.Step, IDisputeGame.Phase.Segment)
        );
    }

    function test_selectStep_outside_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        bytes32 head = _head(id);
        (Leaf memory first, Leaf memory last) = (_leaf(steps, 0), _leaf(steps, 1));
        vm.startPrank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NumberOutside.selector, 0, STEPS));
        game.selectStep(id, head, 0, first, last);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NumberOutside.selector, STEPS + 1, STEPS));
        game.selectStep(id, head, STEPS + 1, first, last);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.selectStep(id, head, 2, first, last);
        vm.stopPrank();
    }

    function test_selectCall_inStep_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        bytes32 head = _head(id);
        InstructionOpening memory call = _open(top, 3);
        vm.prank(challenger);
        vm.expectRevert(_wrongPhase(IDisputeGame.Phase.Frame, IDisputeGame.Phase.Step));
        game.selectCall(id, head, call);
    }

    function test_selectCall_noCall_reverts() public {
        GameId id = _inTop();
        bytes32 head = _head(id);
        InstructionOpening memory add = _open(top, 6);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongOpcode.selector, 0x0004, 0x0201));
        game.selectCall(id, head, add);
    }

    function test_selectCall_anotherNumber_reverts() public {
        GameId id = _inTop();
        bytes32 head = _head(id);
        InstructionOpening memory call = _open(top, 3);
        call.n = 2;
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.selectCall(id, head, call);
    }

    // ------------------------------------------------------------------ depth

    /// @dev Nine nested calls: the ninth is refused.
    function test_selectCall_tooDeep_reverts() public {
        StepProgram.Program[10] memory chain;
        bytes[] memory list = new bytes[](1);
        list[0] = StepProgram.instruction(0x0002, 0, "", StepProgram.n(), hex"0100000000000000");
        chain[9] = StepProgram.program(list, 1);
        for (uint256 k = 9; k > 0; --k) {
            list = new bytes[](1);
            list[0] = StepProgram.instruction(0x0004, 0, "", StepProgram.n(), abi.encode(chain[k].id));
            chain[k - 1] = StepProgram.program(list, 1);
        }
        task = _submitted(chain[0].id, keccak256("constants"), checkpoints);
        GameId id = _challenge();
        _expandSteps();
        _selectStep(id);
        bytes32 key = _topKey();
        for (uint8 depth; depth < 9; ++depth) {
            assertEq(game.gameOf(id).program, chain[depth].id);
            vm.prank(solver);
            game.expandTrace(key, keccak256("trace"));
            bytes32 head = _head(id);
            InstructionOpening memory call = _open(chain[depth], 0);
            if (depth == 8) {
                vm.expectRevert(abi.encodeWithSelector(Refusals.TooDeep.selector, 8));
            }
            vm.prank(challenger);
            game.selectCall(id, head, call);
            key = Proofs.calleeKey(key, keccak256(chain[depth].instructions[0]));
        }
        assertEq(game.gameOf(id).depth, 8);
    }

    function _stepReverts(address who, GameId id, bytes32 head, bytes memory reason) private {
        (Leaf memory first, Leaf memory last) = (_leaf(steps, 0), _leaf(steps, 1));
        vm.prank(who);
        vm.expectRevert(reason);
        game.selectStep(id, head, STEP, first, last);
    }

    function _wrongPhase(IDisputeGame.Phase due, IDisputeGame.Phase given)
        private
        pure
        returns (bytes memory)
    {
        return abi.encodeWithSelector(Refusals.WrongPhase.selector, due, given);
    }
}
