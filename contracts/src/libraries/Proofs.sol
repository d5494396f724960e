// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SegmentIndex, TaskId} from "../types/Ids.sol";
import {TensorType} from "../types/Instruction.sol";
import {ChunkOpening, InstructionOpening, Leaf, ProgramOpening} from "../types/Openings.sol";
import {Instructions} from "./Instructions.sol";
import {Refusals} from "./Refusals.sol";
import {Rfc9162} from "./Rfc9162.sol";

/// @title Openings and the names of claims: encoding.md sections 4 to 6.
/// @notice A function named `require...` returns only if the opening holds.
library Proofs {
    // ------------------------------------------------------------------ names

    /// @notice Key of the step tree of a segment.
    function stepsKey(TaskId task, SegmentIndex segment) internal pure returns (bytes32) {
        return keccak256(abi.encode(uint8(1), task, segment));
    }

    /// @notice Key of the trace of a step's top frame.
    /// @param before The state before the step; the segment's step tree fixes both states.
    /// @param afterwards The state after it.
    function traceKey(TaskId task, SegmentIndex segment, uint32 step, bytes32 before, bytes32 afterwards)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(uint8(2), task, segment, step, before, afterwards));
    }

    /// @notice Key of the trace of a callee's frame.
    /// @param caller Key of the calling frame.
    /// @param call keccak256 of the call instruction. Its bytes include its place in the caller, so no two
    /// calls of a program are equal.
    function calleeKey(bytes32 caller, bytes32 call) internal pure returns (bytes32) {
        return keccak256(abi.encode(uint8(3), caller, call));
    }

    /// @notice Context of a step tree: the checkpoints around the segment.
    function between(bytes32 before, bytes32 afterwards) internal pure returns (bytes32) {
        return keccak256(abi.encode(before, afterwards));
    }

    /// @notice Requires that the opening matches the claim's context.
    function requireContext(bytes32 context, bytes32 given) internal pure {
        if (context != given) revert Refusals.WrongContext(context, given);
    }

    // ------------------------------------------------------------------ trees

    /// @notice Requires the 32-byte leaf `index` of a tree.
    function requireLeaf(bytes32 root, uint64 size, uint64 index, Leaf calldata leaf) internal view {
        _requireHash(root, size, index, Rfc9162.leafHash32(leaf.value), leaf.path);
    }

    /// @notice Requires the 32-byte leaf `index` of a tree, given the proved leaf `anchor`. The path in
    /// `leaf` leads only up to a node whose hash the anchor's path has as a sibling, so neighbouring leaves
    /// need few hashes. The same leaf again needs no path.
    function requireBeside(uint64 size, uint64 anchor, Leaf calldata proved, uint64 index, Leaf calldata leaf)
        internal
        view
    {
        if (index == anchor) {
            if (leaf.value != proved.value) revert Refusals.WrongRoot(proved.value, leaf.value);
            return;
        }
        if (index >= size) revert Rfc9162.NotANode(size, index, 1);
        (uint64 lo, uint64 count, uint256 place) = Rfc9162.parting(size, anchor, index);
        requireLeaf(proved.path[place], count, index - lo, leaf);
    }

    /// @notice Requires the node over the leaves [lo, lo + count) of a tree of `size` leaves.
    function requireNode(
        bytes32 root,
        uint64 size,
        uint64 lo,
        uint64 count,
        bytes32 hash,
        bytes32[] calldata path
    ) internal view {
        bytes32 computed = Rfc9162.rootFromPath(size, lo, count, hash, path);
        if (computed != root) revert Refusals.WrongRoot(root, computed);
    }

    // ------------------------------------------------------------------ programs and values

    /// @notice Requires the preimage of a program id.
    function requireProgram(bytes32 program, ProgramOpening calldata opening) internal pure {
        bytes32 given = sha256(
            abi.encodePacked(
                uint8(2), opening.instructionRoot, opening.instructions, opening.leaves, opening.signature
            )
        );
        if (given != program) revert Refusals.WrongProgram(program, given);
    }

    /// @notice Requires an instruction of a program.
    function requireInstruction(bytes32 program, InstructionOpening calldata opening) internal view {
        ProgramOpening calldata preimage = opening.program;
        requireProgram(program, preimage);
        bytes32 hash = Rfc9162.leafHash(opening.data);
        _requireHash(preimage.instructionRoot, preimage.instructions, opening.n, hash, opening.path);
    }

    /// @notice Requires a chunk of a value of type `t`, with exactly the length for its position.
    function requireChunk(bytes32 value, TensorType memory t, ChunkOpening calldata opening)
        internal
        view
        returns (uint32 index, bytes calldata data)
    {
        // The compiler checks every access to calldata, so each value is read only once.
        (index, data) = (opening.index, opening.data);
        uint256 due = Instructions.chunkLength(t, index);
        if (due == 0 || data.length != due) {
            revert Refusals.WrongLength(index, due, data.length);
        }
        _requireHash(value, Instructions.chunkCount(t), index, Rfc9162.leafHash(data), opening.path);
    }

    /// @dev Requires the leaf `index`, given its hash.
    function _requireHash(bytes32 root, uint256 size, uint256 index, bytes32 hash, bytes32[] calldata path)
        private
        view
    {
        bytes32 computed = Rfc9162.rootFromLeaf(size, index, hash, path);
        if (computed != root) revert Refusals.WrongRoot(root, computed);
    }
}
