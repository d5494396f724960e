// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Evidence} from "../Evidence.sol";
import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {DisputeErrors} from "../libraries/DisputeErrors.sol";
import {Instructions} from "../libraries/Instructions.sol";
import {SplitParts} from "../libraries/SplitParts.sol";
import {ChunkOpening, InstructionOpening, Leaf} from "../types/Openings.sol";
import {GameState} from "./GameState.sol";

/// @title Splitting a long row: block results of one element, stated by the solver: dispute.md section 5.
/// @dev A selection is kept as keccak256(abi.encode(selection)); `selection.instruction` is keccak256(instruction
/// bytes), `selection.words` keccak256(abi.encode(words)), 0 while the solver is to move.
abstract contract Splits is GameState {
    /// @inheritdoc IDisputeGame
    function selectElement(
        uint256 game,
        bytes32 head,
        InstructionOpening calldata,
        uint64 element,
        Leaf calldata,
        ChunkOpening calldata
    ) external override {
        Record storage g = _challengerMove(game, head, Phase.Frame);
        (uint32 n, bytes32 name, uint64 bits, uint32 blocks) = abi.decode(
            _proved(Evidence.selectElement.selector, _reached(g)), (uint32, bytes32, uint64, uint32)
        );
        if (blocks < 2) revert DisputeErrors.NothingToSplit();
        _ask(g, Selection(name, element, 0, blocks, bits, true, 0));
        emit ElementSelected(game, n, element, bits);
    }

    /// @inheritdoc IDisputeGame
    function split(
        uint256 game,
        bytes32 head,
        bytes calldata instruction,
        Selection calldata selection,
        uint64[] calldata words
    ) external override {
        Record storage g = _live(game);
        _requireSolver(g.task);
        _requirePhase(g, Phase.Split);
        _requireInTime(g.deadline);
        _requireSelection(g, selection, keccak256(instruction));
        _requireHead(game, g, head);
        ++g.moves;
        uint256 due = SplitParts.count(selection.lo, selection.hi);
        if (words.length != due) revert DisputeErrors.WrongCount(due, words.length);
        uint16 opcode = Instructions.opcodeOf(instruction);
        uint64 folded = ARBITER.fold(opcode, words);
        if (selection.top) folded = ARBITER.finish(opcode, folded);
        if (folded != selection.word) revert DisputeErrors.WrongFold(selection.word, folded);
        Selection memory stated = selection;
        stated.words = _hashOf(words);
        g.selection = keccak256(abi.encode(stated));
        g.phase = Phase.Block;
        g.deadline = _now() + _dockets[g.task].challengerClock;
        _dequeue(g.task);
        emit Split(game, words);
    }

    /// @inheritdoc IDisputeGame
    function selectBlock(
        uint256 game,
        bytes32 head,
        bytes calldata instruction,
        Selection calldata selection,
        uint64[] calldata words,
        uint8 part
    ) external override {
        Record storage g = _challengerMove(game, head, Phase.Block);
        bytes32 name = keccak256(instruction);
        (uint32 lo, uint32 hi) = _part(g, selection, name, words, part);
        if (hi - lo == 1) revert DisputeErrors.PartSize(part, 1);
        _ask(g, Selection(name, selection.element, lo, hi, words[part], false, 0));
        emit BlockSelected(game, lo, hi, words[part]);
    }

    /// @inheritdoc IDisputeGame
    function judgeBlock(
        uint256 game,
        bytes32 head,
        InstructionOpening calldata,
        Selection calldata selection,
        uint64[] calldata words,
        uint8 part,
        Leaf[] calldata,
        ChunkOpening[] calldata
    ) external override {
        Record storage g = _challengerTurn(game, head, Phase.Block);
        (uint32 n, bytes32 name, uint64 word) =
            abi.decode(_proved(Evidence.judgeBlock.selector, _reached(g)), (uint32, bytes32, uint64));
        (uint32 lo, uint32 hi) = _part(g, selection, name, words, part);
        if (hi - lo != 1) revert DisputeErrors.PartSize(part, hi - lo);
        if (word == words[part]) revert DisputeErrors.BlockAgrees(word);
        emit Judged(game, n, selection.element, words[part], word);
        _convict(game, g, Verdict.SolverFalse);
    }

    /// @dev The solver is to state the block results of a selection.
    function _ask(Record storage g, Selection memory selection) private {
        g.selection = keccak256(abi.encode(selection));
        g.phase = Phase.Split;
        g.deadline = _enqueue(g.task);
    }

    /// @dev The blocks that word number `part` covers.
    function _part(
        Record storage g,
        Selection calldata selection,
        bytes32 instruction,
        uint64[] calldata words,
        uint8 part
    ) private view returns (uint32 lo, uint32 hi) {
        _requireSelection(g, selection, instruction);
        bytes32 stated = _hashOf(words);
        if (stated != selection.words) revert DisputeErrors.WrongPreimage(selection.words, stated);
        if (part >= words.length) revert DisputeErrors.WrongCount(words.length, part);
        return SplitParts.range(selection.lo, selection.hi, part);
    }

    /// @dev keccak256(abi.encode(words)), without a look at each: the words of a split went through the arbiter's fold, which
    /// takes none that is longer than 64 bits.
    function _hashOf(uint64[] calldata words) private pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let at := mload(0x40)
            let length := shl(5, words.length)
            mstore(at, 0x20)
            mstore(add(at, 0x20), words.length)
            calldatacopy(add(at, 0x40), words.offset, length)
            hash := keccak256(at, add(length, 0x40))
        }
    }

    function _requireSelection(Record storage g, Selection calldata selection, bytes32 instruction)
        private
        view
    {
        bytes32 given = keccak256(abi.encode(selection));
        if (given != g.selection) revert DisputeErrors.WrongPreimage(g.selection, given);
        if (instruction != selection.instruction) {
            revert DisputeErrors.WrongPreimage(selection.instruction, instruction);
        }
    }
}
