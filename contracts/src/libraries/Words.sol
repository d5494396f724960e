// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TypeCode} from "../types/Instruction.sol";
import {BytesLanes} from "./BytesLanes.sol";
import {Float32} from "./Float32.sol";
import {Instructions} from "./Instructions.sol";

/// @title Elements as 64-bit words: their bits, zero-extended. encoding.md section 1.
library Words {
    /// @notice Element number `place` of packed bytes, bit for bit.
    function raw(uint8 code, bytes calldata data, uint256 place) internal pure returns (uint64) {
        uint256 size = Instructions.width(code);
        if (size == 4) return BytesLanes.u32At(data, place);
        return size == 8 ? BytesLanes.u64At(data, place) : BytesLanes.u8At(data, place);
    }

    /// @notice The canonical form, as on every load and store: NaN becomes 0x7fc00000, a nonzero bool 1.
    function canonical(uint8 code, uint64 word) internal pure returns (uint64) {
        if (code == TypeCode.F32) return Float32.canonical(uint32(word));
        if (code == TypeCode.BOOL) return word == 0 ? 0 : 1;
        return word;
    }

    /// @notice The integer value of a word of an integer or bool type.
    function toInteger(uint8 code, uint64 word) internal pure returns (int256) {
        if (code == TypeCode.I32) return int32(uint32(word));
        if (code == TypeCode.I64) return int64(word);
        return int256(uint256(word));
    }

    /// @notice The word of an integer type that `value` wraps to.
    function fromInteger(uint8 code, int256 value) internal pure returns (uint64) {
        if (code == TypeCode.I64) return uint64(uint256(value));
        return code == TypeCode.U8 ? uint8(uint256(value)) : uint32(uint256(value));
    }
}
