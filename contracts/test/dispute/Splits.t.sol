// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf} from "../../src/types/Openings.sol";
import {Judging} from "./Judging.sol";
import {LeafTree} from "./LeafTree.sol";
import {StepProgram} from "./StepProgram.sol";

/// @title Splitting the row of 129 blocks: `sum` over 16,512 ones, 128 in each block.
contract SplitsTest is Judging {
    uint64 private constant CLAIMED = 20_000;
    IDisputeGame.Selection private selection;

    /// @dev The solver claims 20,000 instead of 16,512.
    function setUp() public override {
        super.setUp();
        topValues[5] = StepProgram.integer(CLAIMED);
        _start();
    }

    // ------------------------------------------------------------------ the element

    function test_selectElement_asksForBlocks_succeeds() public {
        GameId id = _selected();
        IDisputeGame.Game memory g = game.gameOf(id);
        assertEq(_phase(id), uint256(IDisputeGame.Phase.Split));
        assertEq(g.selection, keccak256(abi.encode(selection)));
        assertEq(g.deadline, vm.getBlockTimestamp() + TIME);
    }

    function test_selectElement_oneBlock_reverts() public {
        GameId id = _inTop();
        bytes32 head = _head(id);
        InstructionOpening memory add = _open(top, 6);
        (Leaf memory value, ChunkOpening memory claimed) = (_leaf(topRoots, 6), _chunk(0, topValues[6], 0));
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingToSplit.selector));
        game.selectElement(id, head, add, 0, value, claimed);
    }

    function test_timeOut_noSplit_convicts_succeeds() public {
        GameId id = _selected();
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.SolverSilent);
    }

    // ------------------------------------------------------------------ heads

    /// @dev In a split the head also covers the selection and its stated words: a move for other words fails.
    function test_head_namesTheSelection_succeeds() public {
        GameId id = _selected();
        bytes32 asked = _head(id);
        assertEq(asked, _dueHead(id, 2));
        _split(id, _words(CLAIMED - 128, 128));
        assertEq(_head(id), _dueHead(id, 3));
        // Same number of moves, same trace, other words.
        IDisputeGame.Selection memory other = selection;
        other.words = keccak256(abi.encode(_words(16_384, CLAIMED - 16_384)));
        assertNotEq(_head(id), _headOf(id, 3, keccak256(abi.encode(other))));
    }

    function _dueHead(GameId id, uint256 moves) private view returns (bytes32) {
        return _headOf(id, moves, keccak256(abi.encode(selection)));
    }

    function _headOf(GameId id, uint256 moves, bytes32 name) private view returns (bytes32) {
        bytes32 root = LeafTree.root(LeafTree.leaves(topRoots));
        return keccak256(abi.encode(id, task, challenger, moves, _topKey(), root, name));
    }

    // ------------------------------------------------------------------ the words

    function test_split_foldsToTheClaim_succeeds() public {
        GameId id = _selected();
        uint64[] memory words = _words(CLAIMED - 128, 128);
        vm.expectEmit(address(game));
        emit IDisputeGame.Split(id, words);
        _split(id, words);
        assertEq(_phase(id), uint256(IDisputeGame.Phase.Block));
        assertEq(game.gameOf(id).selection, keccak256(abi.encode(selection)));
        assertEq(game.gameOf(id).deadline, vm.getBlockTimestamp() + TIME);
    }

    function test_split_foldsToAnotherWord_reverts() public {
        GameId id = _selected();
        _splitReverts(
            solver,
            id,
            _words(16_384, 128),
            abi.encodeWithSelector(Refusals.WrongFold.selector, CLAIMED, 16_512)
        );
    }

    function test_split_wrongCount_reverts() public {
        GameId id = _selected();
        _splitReverts(
            solver, id, new uint64[](129), abi.encodeWithSelector(Refusals.WrongCount.selector, 2, 129)
        );
    }

    function test_split_bySomeoneElse_reverts() public {
        GameId id = _selected();
        _splitReverts(
            challenger,
            id,
            _words(CLAIMED - 128, 128),
            abi.encodeWithSelector(Refusals.NotAllowed.selector, solver, challenger)
        );
    }

    function test_split_late_reverts() public {
        GameId id = _selected();
        uint64 deadline = game.gameOf(id).deadline;
        vm.warp(deadline + 1);
        _splitReverts(
            solver,
            id,
            _words(CLAIMED - 128, 128),
            abi.encodeWithSelector(Refusals.TooLate.selector, deadline, deadline + 1)
        );
    }

    function test_split_anotherSelection_reverts() public {
        GameId id = _selected();
        IDisputeGame.Selection memory other = selection;
        other.word = 16_512;
        bytes32 head = _head(id);
        vm.prank(solver);
        vm.expectPartialRevert(Refusals.WrongPreimage.selector);
        game.split(id, head, top.instructions[5], other, _words(16_384, 128));
    }

    function test_split_anotherInstruction_reverts() public {
        GameId id = _selected();
        bytes32 head = _head(id);
        vm.prank(solver);
        vm.expectRevert(
            abi.encodeWithSelector(
                Refusals.WrongPreimage.selector,
                keccak256(top.instructions[5]),
                keccak256(top.instructions[6])
            )
        );
        game.split(id, head, top.instructions[6], selection, _words(CLAIMED - 128, 128));
    }

    function test_split_twice_reverts() public {
        GameId id = _selected();
        _split(id, _words(CLAIMED - 128, 128));
        _splitReverts(
            solver,
            id,
            _words(CLAIMED - 128, 128),
            abi.encodeWithSelector(
                Refusals.WrongPhase.selector, IDisputeGame.Phase.Split, IDisputeGame.Phase.Block
            )
        );
    }

    // ------------------------------------------------------------------ the blocks

    /// @dev Attack 9: one wrong block among 128, two splits down.
    function test_judgeBlock_wrongBlockBelowASelectedPart_convicts_succeeds() public {
        GameId id = _selected();
        uint64[] memory words = _words(CLAIMED - 128, 128);
        _split(id, words);
        _selectBlock(id, words, 0);
        uint64[] memory blocks = new uint64[](128);
        for (uint256 k; k < 128; ++k) {
            blocks[k] = 128;
        }
        blocks[77] += CLAIMED - 16_512;
        _split(id, blocks);
        _blockReverts(id, blocks, 76, abi.encodeWithSelector(Refusals.BlockAgrees.selector, 128));
        uint256 free = _free(challenger);
        vm.expectEmit(address(game));
        emit IDisputeGame.Judged(id, 5, 0, 128 + CLAIMED - 16_512, 128);
        _judgeBlock(id, blocks, 77);
        _assertConvicted(id, free);
    }

    /// @dev The last part of a split of 129 blocks is one block, number 128, although the first part is 128
    /// blocks.
    function test_judgeBlock_shortLastPart_convicts_succeeds() public {
        GameId id = _selected();
        uint64[] memory words = _words(16_384, CLAIMED - 16_384);
        _split(id, words);
        uint256 free = _free(challenger);
        vm.expectEmit(address(game));
        emit IDisputeGame.Judged(id, 5, 0, CLAIMED - 16_384, 128);
        _judgeBlock(id, words, 1);
        _assertConvicted(id, free);
    }

    /// @dev Attack 58: words that do not fold to what was stated for a part are refused.
    function test_split_partFoldsToAnotherWord_reverts() public {
        GameId id = _selected();
        uint64[] memory words = _words(CLAIMED - 128, 128);
        _split(id, words);
        _selectBlock(id, words, 0);
        uint64[] memory blocks = new uint64[](128);
        for (uint256 k; k < 128; ++k) {
            blocks[k] = 128;
        }
        _splitReverts(
            solver, id, blocks, abi.encodeWithSelector(Refusals.WrongFold.selector, CLAIMED - 128, 16_384)
        );
    }

    function test_selectBlock_oneBlock_reverts() public {
        GameId id = _selected();
        uint64[] memory words = _words(CLAIMED - 128, 128);
        _split(id, words);
        bytes32 head = _head(id);
        vm.startPrank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.PartSize.selector, 1, 1));
        game.selectBlock(id, head, top.instructions[5], selection, words, 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongCount.selector, 2, 2));
        game.selectBlock(id, head, top.instructions[5], selection, words, 2);
        vm.stopPrank();
    }

    function test_judgeBlock_severalBlocks_reverts() public {
        GameId id = _selected();
        uint64[] memory words = _words(CLAIMED - 128, 128);
        _split(id, words);
        _blockReverts(id, words, 0, abi.encodeWithSelector(Refusals.PartSize.selector, 0, 128));
    }

    function test_judgeBlock_otherWords_reverts() public {
        GameId id = _selected();
        _split(id, _words(CLAIMED - 128, 128));
        uint64[] memory other = _words(16_384, CLAIMED - 16_384);
        _blockReverts(
            id,
            other,
            1,
            abi.encodeWithSelector(
                Refusals.WrongPreimage.selector, selection.words, keccak256(abi.encode(other))
            )
        );
    }

    /// @dev The word is right for the operand that the solver stated. For an operand that the challenger
    /// invented it would be wrong, and an honest solver would be slashed.
    function test_judgeBlock_inventedOperand_reverts() public {
        GameId id = _selected();
        uint64[] memory words = _words(CLAIMED - 128, 128);
        _split(id, words);
        bytes memory twos = topValues[4];
        for (uint256 k; k < 128; ++k) {
            twos[8 * (128 * 128 + k)] = 0x02;
        }
        (InstructionOpening memory sum, Leaf[] memory operands, ChunkOpening[] memory chunks) = _evidence(1);
        operands[0].value = LeafTree.root(LeafTree.chunks(twos));
        chunks[0] = _chunk(0, twos, 128);
        bytes32[] memory roots = topRoots;
        bytes32 root = LeafTree.root(LeafTree.leaves(roots));
        roots[4] = operands[0].value;
        bytes32 computed = LeafTree.root(LeafTree.leaves(roots));
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongRoot.selector, root, computed));
        game.judgeBlock(id, head, sum, selection, words, 1, operands, chunks);
    }

    function test_timeOut_noBlockNamed_dismisses_succeeds() public {
        GameId id = _selected();
        _split(id, _words(CLAIMED - 128, 128));
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.ChallengerSilent);
    }

    // ------------------------------------------------------------------ parts

    function _selected() private returns (GameId id) {
        id = _inTop();
        bytes32 head = _head(id);
        InstructionOpening memory sum = _open(top, 5);
        (Leaf memory value, ChunkOpening memory claimed) = (_leaf(topRoots, 5), _chunk(0, topValues[5], 0));
        vm.prank(challenger);
        game.selectElement(id, head, sum, 0, value, claimed);
        selection = IDisputeGame.Selection(keccak256(sum.data), 0, 0, 129, CLAIMED, true, 0);
    }

    function _words(uint64 first, uint64 last) private pure returns (uint64[] memory words) {
        words = new uint64[](2);
        (words[0], words[1]) = (first, last);
    }

    function _split(GameId id, uint64[] memory words) private {
        bytes32 head = _head(id);
        vm.prank(solver);
        game.split(id, head, top.instructions[5], selection, words);
        selection.words = keccak256(abi.encode(words));
    }

    function _selectBlock(GameId id, uint64[] memory words, uint8 part) private {
        bytes32 head = _head(id);
        vm.expectEmit(address(game));
        emit IDisputeGame.BlockSelected(id, 0, 128, words[part]);
        vm.prank(challenger);
        game.selectBlock(id, head, top.instructions[5], selection, words, part);
        (selection.hi, selection.word, selection.top, selection.words) = (128, words[part], false, 0);
    }

    function _evidence(uint8 part)
        private
        view
        returns (InstructionOpening memory sum, Leaf[] memory operands, ChunkOpening[] memory chunks)
    {
        sum = _open(top, 5);
        operands = new Leaf[](1);
        operands[0] = _leaf(topRoots, 4);
        chunks = new ChunkOpening[](1);
        chunks[0] = _chunk(0, topValues[4], selection.hi == 129 ? 128 * uint32(part) : part);
    }

    function _judgeBlock(GameId id, uint64[] memory words, uint8 part) private {
        bytes32 head = _head(id);
        (InstructionOpening memory sum, Leaf[] memory operands, ChunkOpening[] memory chunks) =
            _evidence(part);
        vm.prank(challenger);
        game.judgeBlock(id, head, sum, selection, words, part, operands, chunks);
    }

    function _blockReverts(GameId id, uint64[] memory words, uint8 part, bytes memory reason) private {
        bytes32 head = _head(id);
        (InstructionOpening memory sum, Leaf[] memory operands, ChunkOpening[] memory chunks) =
            _evidence(part);
        vm.prank(challenger);
        vm.expectRevert(reason);
        game.judgeBlock(id, head, sum, selection, words, part, operands, chunks);
    }

    function _splitReverts(address who, GameId id, uint64[] memory words, bytes memory reason) private {
        bytes32 head = _head(id);
        vm.prank(who);
        vm.expectRevert(reason);
        game.split(id, head, top.instructions[5], selection, words);
    }
}
