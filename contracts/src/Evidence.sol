// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IArbiter} from "./interfaces/IArbiter.sol";
import {IDisputeGame} from "./interfaces/IDisputeGame.sol";
import {BigEndian} from "./libraries/BigEndian.sol";
import {Instructions} from "./libraries/Instructions.sol";
import {Proofs} from "./libraries/Proofs.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {SplitParts} from "./libraries/SplitParts.sol";
import {Words} from "./libraries/Words.sol";
import {Instruction, Opcode, OperandChunk, TensorType} from "./types/Instruction.sol";
import {ChunkOpening, InstructionOpening, Leaf, Node} from "./types/Openings.sol";

/// @title Evidence: proves the challenger's openings of a program and a trace, and has the arbiter compute
/// (dispute.md sections 4 and 5).
/// @notice Stateless. It decides nothing: the game compares what it returns. It is a separate contract
/// because of EIP-170's limit of 24,576 bytes. Each function has the parameters of the game's function of
/// that name, with (program, trace root) of the frame instead of (game, head), so that the game can forward
/// its calldata unchanged. Unnamed parameters are used only by the game.
/// @dev An offset in calldata may point anywhere, including at the two words that differ. So the game uses
/// only values returned from here, never an opening that is proved here.
contract Evidence {
    /// @notice Edge k of a frame: the number of its instruction, its value in the frame's trace, the hash of
    /// the call's bytes, and the leaf on the other side in the caller's trace (0 in a top frame, which has no
    /// call).
    struct Edge {
        uint32 n;
        uint32 k;
        bytes32 value;
        bytes32 call;
        uint32 callerLeaf;
    }

    /// @notice Leaf number `leaf` of a trace that has `leaves` leaves. Other leaves of the trace are proved
    /// relative to this one (`Proofs.requireBeside`).
    struct Anchor {
        uint32 leaves;
        uint32 leaf;
    }

    IArbiter private immutable ARBITER;

    constructor(IArbiter arbiter) {
        ARBITER = arbiter;
    }

    // ------------------------------------------------------------------ on the way down

    /// @notice For `Tree.Trace`, root and size of the trace tree. Otherwise root, size and byte count of the
    /// value at leaf `first` of the trace.
    function demand(
        bytes32 program,
        bytes32 trace,
        IDisputeGame.Tree tree,
        IDisputeGame.ValueOpening calldata opening,
        bytes32,
        bytes32,
        Node[] calldata
    ) external view returns (bytes32 root, uint32 size, uint64 bytesTotal) {
        uint32 leaves = opening.instruction.program.leaves;
        if (tree == IDisputeGame.Tree.Trace) {
            Proofs.requireProgram(program, opening.instruction.program);
            return (trace, leaves, 0);
        }
        (Instruction memory ins,) = _opened(program, opening.instruction);
        if (ins.results.length == 0) revert Refusals.Malformed();
        Proofs.requireLeaf(trace, leaves, ins.first, opening.value);
        size = uint32(Instructions.chunkCount(ins.results[0]));
        return (opening.value.value, size, uint64(Instructions.byteCount(ins.results[0])));
    }

    /// @notice The call's number, program and hash, and the number of leaves of the caller's trace.
    function selectCall(bytes32 program, bytes32, InstructionOpening calldata call)
        external
        view
        returns (uint32 n, bytes32 callee, bytes32 hash, uint32 leaves)
    {
        (, bytes calldata attributes) = _openedAs(Opcode.CALL, program, call);
        callee = bytes32(BigEndian.read(attributes, 0, 32));
        return (call.n, callee, keccak256(call.data), call.program.leaves);
    }

    // ------------------------------------------------------------------ edges

    /// @notice The value of the frame's input k and, in the frame of `call`, the leaf of the caller's trace
    /// that it comes from.
    function judgeInput(
        bytes32 program,
        bytes32 trace,
        InstructionOpening calldata instruction,
        Leaf calldata value,
        Leaf calldata,
        bytes32,
        bytes32,
        bytes calldata call
    ) external view returns (Edge memory edge) {
        (Instruction memory ins, bytes calldata attributes) = _openedAs(Opcode.INPUT, program, instruction);
        Proofs.requireLeaf(trace, instruction.program.leaves, ins.first, value);
        uint32 k = BigEndian.u32At(attributes, 0);
        edge = Edge(instruction.n, k, value.value, keccak256(call), 0);
        if (call.length != 0) {
            (Instruction memory site,) = Instructions.decode(call);
            if (k >= site.leaves.length) revert Refusals.Malformed();
            edge.callerLeaf = site.leaves[k];
        }
    }

    /// @notice The value of the frame's output k and, in the frame of `call`, the matching leaf of the
    /// caller's trace.
    function judgeOutput(
        bytes32 program,
        bytes32 trace,
        InstructionOpening calldata instruction,
        Leaf calldata value,
        Leaf calldata,
        bytes32,
        bytes32,
        bytes calldata call
    ) external view returns (Edge memory edge) {
        (Instruction memory ins, bytes calldata attributes) = _openedAs(Opcode.OUTPUT, program, instruction);
        if (ins.leaves.length != 1) revert Refusals.Malformed();
        Proofs.requireLeaf(trace, instruction.program.leaves, ins.leaves[0], value);
        uint32 k = BigEndian.u32At(attributes, 0);
        edge = Edge(instruction.n, k, value.value, keccak256(call), 0);
        if (call.length != 0) {
            (Instruction memory site,) = Instructions.decode(call);
            if (k >= site.results.length) revert Refusals.Malformed();
            edge.callerLeaf = site.first + k;
        }
    }

    // ------------------------------------------------------------------ elements

    /// @notice The instruction's number, and the claimed and the computed bits of an element.
    function judge(
        bytes32 program,
        bytes32 trace,
        InstructionOpening calldata instruction,
        uint64 element,
        Leaf[] calldata operands,
        ChunkOpening[] calldata chunks,
        Leaf calldata value,
        ChunkOpening calldata claimed
    ) external view returns (uint32 n, uint64 claimedBits, uint64 computed) {
        (Instruction memory ins,) = _opened(program, instruction);
        uint32 leaves = instruction.program.leaves;
        claimedBits = _claimedBits(trace, leaves, ins, element, value, claimed);
        // The arbiter refuses instructions that are not primitives, and rows of several blocks.
        OperandChunk[] memory opened = _operandChunks(Anchor(leaves, ins.first), value, ins, operands, chunks);
        return (instruction.n, claimedBits, ARBITER.element(instruction.data, element, opened));
    }

    /// @notice The instruction's number and hash, the claimed bits of an element, and the number of blocks of
    /// its row.
    function selectElement(
        bytes32 program,
        bytes32 trace,
        InstructionOpening calldata instruction,
        uint64 element,
        Leaf calldata value,
        ChunkOpening calldata claimed
    ) external view returns (uint32 n, bytes32 name, uint64 claimedBits, uint32 blocks) {
        (Instruction memory ins,) = _opened(program, instruction);
        claimedBits = _claimedBits(trace, instruction.program.leaves, ins, element, value, claimed);
        return (instruction.n, keccak256(instruction.data), claimedBits, ARBITER.blocks(instruction.data));
    }

    /// @notice The instruction's number and hash, and the word of the single block that a part of a split
    /// covers. The game checks selection, words and part.
    function judgeBlock(
        bytes32 program,
        bytes32 trace,
        InstructionOpening calldata instruction,
        IDisputeGame.Selection calldata selection,
        uint64[] calldata,
        uint8 part,
        Leaf[] calldata operands,
        ChunkOpening[] calldata chunks
    ) external view returns (uint32 n, bytes32 name, uint64 word) {
        (Instruction memory ins,) = _opened(program, instruction);
        OperandChunk[] memory opened;
        // A block after the element of a prefix sum reads nothing.
        if (chunks.length != 0) {
            uint8 operand = chunks[0].operand;
            Anchor memory anchor = Anchor(instruction.program.leaves, ins.leaves[operand]);
            Leaf calldata first = operands[operand];
            Proofs.requireLeaf(trace, anchor.leaves, anchor.leaf, first);
            opened = _operandChunks(anchor, first, ins, operands, chunks);
        }
        (uint32 block_,) = SplitParts.range(selection.lo, selection.hi, part);
        word = ARBITER.blockResult(instruction.data, selection.element, block_, opened);
        return (instruction.n, keccak256(instruction.data), word);
    }

    // ------------------------------------------------------------------ openings

    /// @dev Proves and decodes an instruction of the program.
    function _opened(bytes32 program, InstructionOpening calldata instruction)
        private
        view
        returns (Instruction memory ins, bytes calldata attributes)
    {
        Proofs.requireInstruction(program, instruction);
        return Instructions.decode(instruction.data);
    }

    /// @dev Proves and decodes an instruction of the program with this opcode.
    function _openedAs(uint16 opcode, bytes32 program, InstructionOpening calldata instruction)
        private
        view
        returns (Instruction memory ins, bytes calldata attributes)
    {
        (ins, attributes) = _opened(program, instruction);
        if (ins.opcode != opcode) revert Refusals.WrongOpcode(opcode, ins.opcode);
    }

    /// @dev The bits of an element exactly as they are in the claimed chunk of the instruction's value,
    /// canonical or not. `claimed.operand` is ignored.
    function _claimedBits(
        bytes32 trace,
        uint32 leaves,
        Instruction memory ins,
        uint64 element,
        Leaf calldata value,
        ChunkOpening calldata claimed
    ) private view returns (uint64) {
        if (ins.results.length != 1) revert Refusals.WrongCount(1, ins.results.length);
        TensorType memory t = ins.results[0];
        uint256 count = Instructions.elementCount(t);
        if (element >= count) revert IArbiter.ElementOutside(element, count);
        (uint64 chunk, uint256 place) = Instructions.locate(t, element);
        Proofs.requireLeaf(trace, leaves, ins.first, value);
        (uint32 index, bytes calldata data) = Proofs.requireChunk(value.value, t, claimed);
        if (index != chunk) revert Refusals.WrongChunk(chunk, index);
        return Words.raw(t.code, data, place);
    }

    /// @dev The chunks, each proved under its operand's value. The operands' leaves are proved relative to
    /// `proved`, the anchor leaf of the trace. `operands` has one entry for each operand; entries that no
    /// chunk refers to are not read and may be empty.
    function _operandChunks(
        Anchor memory anchor,
        Leaf calldata proved,
        Instruction memory ins,
        Leaf[] calldata operands,
        ChunkOpening[] calldata chunks
    ) private view returns (OperandChunk[] memory opened) {
        if (operands.length != ins.leaves.length) {
            revert Refusals.WrongCount(ins.leaves.length, operands.length);
        }
        opened = new OperandChunk[](chunks.length);
        uint256 seen;
        for (uint256 k; k < chunks.length; ++k) {
            ChunkOpening calldata chunk = chunks[k];
            uint8 operand = chunk.operand;
            if (operand >= operands.length) revert Refusals.Malformed();
            Leaf calldata leaf = operands[operand];
            if (seen >> operand & 1 == 0) {
                Proofs.requireBeside(anchor.leaves, anchor.leaf, proved, ins.leaves[operand], leaf);
                seen |= 1 << operand;
            }
            (uint32 index, bytes calldata data) =
                Proofs.requireChunk(leaf.value, ins.operands[operand], chunk);
            opened[k] = OperandChunk(operand, index, data);
        }
    }
}
