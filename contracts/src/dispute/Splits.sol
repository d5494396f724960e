// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Evidence} from "../Evidence.sol";
import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {Instructions} from "../libraries/Instructions.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {SplitParts} from "../libraries/SplitParts.sol";
import {GameId} from "../types/Ids.sol";
import {ChunkOpening, InstructionOpening, Leaf} from "../types/Openings.sol";
import {GameState} from "./GameState.sol";

/// @title Splitting a long row: the solver states block results of one element (dispute.md section 5).
/// @dev A selection is kept as keccak256(abi.encode(selection)). `selection.instruction` is
/// keccak256(instruction bytes); `selection.words` is keccak256(abi.encode(words)), or 0 while the solver is
/// to move.
abstract contract Splits is GameState {
    /// @inheritdoc IDisputeGame
    function selectElement(
        GameId game,
        bytes32 head,
        InstructionOpening calldata,
        uint64 element,
        Leaf calldata,
        ChunkOpening calldata
    ) external override {
        GameRecord storage record = _challengerMove(game, head, Phase.Frame);
        (uint32 n, bytes32 name, uint64 bits, uint32 blocks) = abi.decode(
            _proved(Evidence.selectElement.selector, _reached(record)), (uint32, bytes32, uint64, uint32)
        );
        if (blocks < 2) revert Refusals.NothingToSplit();
        _ask(record, Selection(name, element, 0, blocks, bits, true, 0));
        emit ElementSelected(game, n, element, bits);
    }

    /// @inheritdoc IDisputeGame
    function split(
        GameId game,
        bytes32 head,
        bytes calldata instruction,
        Selection calldata selection,
        uint64[] calldata words
    ) external override {
        GameRecord storage record = _live(game);
        _requireSolver(_taskOf(record));
        _requirePhase(record, Phase.Split);
        _requireSolverInTime(record);
        _requireSelection(record, selection, keccak256(instruction));
        _requireHead(game, record, head);
        ++record.moves;
        uint256 due = SplitParts.count(selection.lo, selection.hi);
        if (words.length != due) revert Refusals.WrongCount(due, words.length);
        uint16 opcode = Instructions.opcodeOf(instruction);
        uint64 folded = ARBITER.fold(opcode, words);
        if (selection.top) folded = ARBITER.finish(opcode, folded);
        if (folded != selection.word) revert Refusals.WrongFold(selection.word, folded);
        Selection memory stated = selection;
        stated.words = _hashOf(words);
        record.selection = keccak256(abi.encode(stated));
        record.phase = Phase.Block;
        _solverMoved(record);
        emit Split(game, words);
    }

    /// @inheritdoc IDisputeGame
    function selectBlock(
        GameId game,
        bytes32 head,
        bytes calldata instruction,
        Selection calldata selection,
        uint64[] calldata words,
        uint8 part
    ) external override {
        GameRecord storage record = _challengerMove(game, head, Phase.Block);
        bytes32 name = keccak256(instruction);
        (uint32 lo, uint32 hi) = _part(record, selection, name, words, part);
        if (hi - lo == 1) revert Refusals.PartSize(part, 1);
        _ask(record, Selection(name, selection.element, lo, hi, words[part], false, 0));
        emit BlockSelected(game, lo, hi, words[part]);
    }

    /// @inheritdoc IDisputeGame
    function judgeBlock(
        GameId game,
        bytes32 head,
        InstructionOpening calldata,
        Selection calldata selection,
        uint64[] calldata words,
        uint8 part,
        Leaf[] calldata,
        ChunkOpening[] calldata
    ) external override {
        GameRecord storage record = _challengerTurn(game, head, Phase.Block);
        (uint32 n, bytes32 name, uint64 word) =
            abi.decode(_proved(Evidence.judgeBlock.selector, _reached(record)), (uint32, bytes32, uint64));
        (uint32 lo, uint32 hi) = _part(record, selection, name, words, part);
        if (hi - lo != 1) revert Refusals.PartSize(part, hi - lo);
        if (word == words[part]) revert Refusals.BlockAgrees(word);
        emit Judged(game, n, selection.element, words[part], word);
        _convict(game, record, Verdict.SolverFalse);
    }

    /// @dev Requires the solver to state the block results of a selection.
    function _ask(GameRecord storage record, Selection memory selection) private {
        record.selection = keccak256(abi.encode(selection));
        record.phase = Phase.Split;
    }

    /// @dev The blocks that word number `part` covers.
    function _part(
        GameRecord storage record,
        Selection calldata selection,
        bytes32 instruction,
        uint64[] calldata words,
        uint8 part
    ) private view returns (uint32 lo, uint32 hi) {
        _requireSelection(record, selection, instruction);
        bytes32 stated = _hashOf(words);
        if (stated != selection.words) revert Refusals.WrongPreimage(selection.words, stated);
        if (part >= words.length) revert Refusals.WrongCount(words.length, part);
        return SplitParts.range(selection.lo, selection.hi, part);
    }

    /// @dev keccak256(abi.encode(words)), without range checks: the words of a split went through the
    /// arbiter's fold, which rejects any longer than 64 bits.
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

    function _requireSelection(GameRecord storage record, Selection calldata selection, bytes32 instruction)
        private
        view
    {
        bytes32 given = keccak256(abi.encode(selection));
        if (given != record.selection) revert Refusals.WrongPreimage(record.selection, given);
        if (instruction != selection.instruction) {
            revert Refusals.WrongPreimage(selection.instruction, instruction);
        }
    }
}
