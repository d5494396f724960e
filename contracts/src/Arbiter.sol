// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ArbiterElements} from "./ArbiterElements.sol";
import {ArbiterMovement} from "./ArbiterMovement.sol";
import {ArbiterReductions} from "./ArbiterReductions.sol";
import {IArbiter} from "./interfaces/IArbiter.sol";
import {Instructions} from "./libraries/Instructions.sol";
import {Instruction, Opcode, OperandChunk} from "./types/Instruction.sol";

/// @title Arbiter of arithmetic version 1.
/// @notice Only dispatches: the families of primitives are in ArbiterMovement, ArbiterElements and
/// ArbiterReductions.
contract Arbiter is IArbiter {
    /// @inheritdoc IArbiter
    function arithmetic() external pure override returns (uint16) {
        return 1;
    }

    /// @inheritdoc IArbiter
    function element(bytes calldata instruction, uint64 index, OperandChunk[] calldata chunks)
        public
        pure
        override
        returns (uint64)
    {
        (Instruction memory ins, bytes calldata attributes) = _decode(instruction, index);
        uint16 opcode = ins.opcode;
        if (ArbiterReductions.isReduction(opcode)) {
            uint32 count = ArbiterReductions.blockCount(ins);
            if (count != 1) revert SplitNeeded(count);
            return finish(opcode, ArbiterReductions.blockResult(ins, index, 0, chunks));
        }
        uint256 family = opcode >> 8;
        if (family == 0x01) return _movement(ins, attributes, index, chunks);
        if (opcode >= Opcode.ADD && opcode <= Opcode.RINT) {
            return ArbiterElements.arithmetic(ins, index, chunks);
        }
        if (opcode == Opcode.SCALE) return ArbiterElements.scale(ins, index, chunks);
        if (opcode >= Opcode.LT && opcode <= Opcode.EQ) return ArbiterElements.compare(ins, index, chunks);
        if (opcode == Opcode.SELECT) return ArbiterElements.select(ins, index, chunks);
        if (opcode >= Opcode.AND && opcode <= Opcode.MULHI) {
            return ArbiterElements.bitwise(ins, index, chunks);
        }
        if (opcode == Opcode.CAST) return ArbiterElements.cast(ins, index, chunks);
        if (opcode == Opcode.BITS) return ArbiterElements.bits(ins, index, chunks);
        if (opcode == Opcode.QUANTISE || opcode == Opcode.TO_FIXED) {
            return ArbiterElements.fixedPoint(ins, attributes, index, chunks);
        }
        if (opcode == Opcode.ROUND_SCALED) {
            return ArbiterElements.roundScaled(ins, attributes, index, chunks);
        }
        if (opcode == Opcode.PHILOX) return ArbiterElements.philox(ins, attributes, index, chunks);
        if (opcode == Opcode.CONSTANT) return ArbiterMovement.constantOf(ins, attributes);
        revert NotAPrimitive(opcode);
    }

    /// @inheritdoc IArbiter
    function blockResult(
        bytes calldata instruction,
        uint64 index,
        uint32 blockIndex,
        OperandChunk[] calldata chunks
    ) public pure override returns (uint64) {
        (Instruction memory ins,) = _decode(instruction, index);
        if (!ArbiterReductions.isReduction(ins.opcode)) revert NotAPrimitive(ins.opcode);
        return ArbiterReductions.blockResult(ins, index, blockIndex, chunks);
    }

    /// @inheritdoc IArbiter
    function blocks(bytes calldata instruction) public pure override returns (uint32) {
        if (!ArbiterReductions.isReduction(Instructions.opcodeOf(instruction))) return 1;
        (Instruction memory ins,) = Instructions.decode(instruction);
        return ArbiterReductions.blockCount(ins);
    }

    /// @inheritdoc IArbiter
    function fold(uint16 opcode, uint64[] calldata words) external pure override returns (uint64) {
        if (!ArbiterReductions.isReduction(opcode)) revert NotAPrimitive(opcode);
        return ArbiterReductions.fold(opcode, words);
    }

    /// @inheritdoc IArbiter
    function finish(uint16 opcode, uint64 word) public pure override returns (uint64) {
        return opcode == Opcode.ARGMAX ? uint32(word) : word;
    }

    function _movement(
        Instruction memory ins,
        bytes calldata attributes,
        uint256 index,
        OperandChunk[] calldata chunks
    ) private pure returns (uint64) {
        if (ins.opcode == Opcode.STRIDED) {
            return ArbiterMovement.strided(ins, attributes, index, chunks);
        }
        if (ins.opcode == Opcode.CONCAT) return ArbiterMovement.concat(ins, attributes, index, chunks);
        if (ins.opcode == Opcode.PAD) return ArbiterMovement.pad(ins, attributes, index, chunks);
        if (ins.opcode == Opcode.GATHER) return ArbiterMovement.gather(ins, index, chunks);
        revert NotAPrimitive(ins.opcode);
    }

    /// @dev Decodes and checks that the element exists.
    function _decode(bytes calldata instruction, uint64 index)
        private
        pure
        returns (Instruction memory ins, bytes calldata attributes)
    {
        (ins, attributes) = Instructions.decode(instruction);
        if (ins.results.length != 1) revert OneResultExpected(ins.results.length);
        uint256 count = Instructions.elementCount(ins.results[0]);
        if (index >= count) revert ElementOutside(index, count);
    }
}
