// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Opcode, TypeCode} from "../../src/types/Instruction.sol";
import {ChunkOpening, InstructionOpening, Leaf} from "../../src/types/Openings.sol";
import {Judging} from "./Judging.sol";
import {StepProgram} from "./StepProgram.sol";

/// @title Splitting a row whose words hold more than its element: an `argmax` over 129 blocks of 256 f32.
/// @notice A word is the value and the place of the largest element; the element is only the place
/// (encoding.md, "Block results"). The row is 0 except for a 2.0 at place 300, in block 1.
contract ArgmaxSplitTest is Judging {
    uint32 private constant ROW = 129 * 256;
    uint32 private constant PLACE = 300;
    uint64 private constant LARGEST = uint64(0x40000000) << 32 | PLACE;
    IDisputeGame.Selection private selection;

    function setUp() public override {
        super.setUp();
        bytes memory row = abi.encodePacked(TypeCode.F32, uint8(1), ROW);
        bytes memory place = abi.encodePacked(TypeCode.I32, uint8(1), uint32(1));
        bytes[] memory list = new bytes[](2);
        list[0] = StepProgram.instruction(Opcode.INPUT, 0, "", row, abi.encodePacked(uint32(0)));
        list[1] = StepProgram.instruction(Opcode.ARGMAX, 1, StepProgram.operand(0, row), place, "");
        top = StepProgram.program(list, 2);
        bytes memory x = new bytes(4 * uint256(ROW));
        x[4 * uint256(PLACE) + 3] = 0x40;
        topValues = [x, bytes(hex"2c010000")];
        _start();
    }

    /// @dev At the top the words fold to the element, below it to the word that was stated. An honest solver
    /// can always state such words.
    function test_split_honestSolver_isNeverConvicted_succeeds() public {
        GameId id = _selected();
        uint64[] memory words = new uint64[](2);
        (words[0], words[1]) = (LARGEST, 128 * 256);
        _split(id, words);
        bytes32 head = _head(id);
        vm.prank(challenger);
        game.selectBlock(id, head, top.instructions[1], selection, words, 0);
        (selection.hi, selection.word, selection.top, selection.words) = (128, LARGEST, false, 0);
        uint64[] memory blocks = _blocks();
        _split(id, blocks);
        for (uint8 part; part < 2; ++part) {
            _judgeBlockAgrees(id, blocks, part);
        }
    }

    /// @dev Below the top the value counts too: words with another value at the same place do not fold to the
    /// stated word.
    function test_split_anotherValueAtThePlace_reverts() public {
        GameId id = _selected();
        uint64[] memory words = new uint64[](2);
        (words[0], words[1]) = (LARGEST, 128 * 256);
        _split(id, words);
        bytes32 head = _head(id);
        vm.prank(challenger);
        game.selectBlock(id, head, top.instructions[1], selection, words, 0);
        (selection.hi, selection.word, selection.top, selection.words) = (128, LARGEST, false, 0);
        uint64[] memory blocks = _blocks();
        blocks[1] = uint64(0x3f800000) << 32 | PLACE;
        head = _head(id);
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongFold.selector, LARGEST, blocks[1]));
        game.split(id, head, top.instructions[1], selection, blocks);
    }

    function _selected() private returns (GameId id) {
        id = _inTop();
        bytes32 head = _head(id);
        InstructionOpening memory argmax = _open(top, 1);
        (Leaf memory value, ChunkOpening memory claimed) = (_leaf(topRoots, 1), _chunk(0, topValues[1], 0));
        vm.prank(challenger);
        game.selectElement(id, head, argmax, 0, value, claimed);
        selection = IDisputeGame.Selection(keccak256(argmax.data), 0, 0, 129, PLACE, true, 0);
    }

    /// @dev The words of blocks 0 ... 127.
    function _blocks() private pure returns (uint64[] memory blocks) {
        blocks = new uint64[](128);
        for (uint64 k; k < 128; ++k) {
            blocks[k] = k == 1 ? LARGEST : 256 * k;
        }
    }

    function _split(GameId id, uint64[] memory words) private {
        bytes32 head = _head(id);
        vm.prank(solver);
        game.split(id, head, top.instructions[1], selection, words);
        selection.words = keccak256(abi.encode(words));
    }

    function _judgeBlockAgrees(GameId id, uint64[] memory words, uint8 part) private {
        bytes32 head = _head(id);
        InstructionOpening memory argmax = _open(top, 1);
        Leaf[] memory operands = new Leaf[](1);
        operands[0] = _leaf(topRoots, 0);
        ChunkOpening[] memory chunks = new ChunkOpening[](1);
        chunks[0] = _chunk(0, topValues[0], part);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.BlockAgrees.selector, words[part]));
        game.judgeBlock(id, head, argmax, selection, words, part, operands, chunks);
    }
}
