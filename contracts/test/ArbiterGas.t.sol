// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IArbiter} from "../src/interfaces/IArbiter.sol";
import {Opcode, TypeCode} from "../src/types/Instruction.sol";
import {Builder as B} from "./harness/Builder.sol";
import {Production} from "./harness/Production.sol";

/// @title Execution gas of the arbiter on full chunks, excluding the caller's encoding of them.
/// @dev A judgment carries about 5 KiB of chunks and paths. They cost 205k gas at EIP-7623's floor of 40 gas
/// per byte, and 82k at the standard price of 16. Execution up to the difference, which is more than any
/// limit here, costs nothing extra.
contract ArbiterGasTest is Production {
    IArbiter private arbiter;

    function setUp() public {
        arbiter = _newArbiter();
    }

    function test_element_gasOfOneElement_succeeds() public {
        bytes memory t = B.shape(TypeCode.F32, 2, 128);
        bytes memory x = B.repeated(hex"a1b2c33d", 256);
        bytes memory ins = B.instruction(Opcode.DIV, B.list(t, t), t, "");
        _expectBelow("div", 25_000, ins, B.list(x, x));
        ins = B.instruction(Opcode.SQRT, B.list(t), t, "");
        _expectBelow("sqrt", 18_000, ins, B.list(x));
        bytes memory mask = B.shape(TypeCode.BOOL, 2, 128);
        ins = B.instruction(Opcode.SELECT, B.list(mask, t, t), t, "");
        _expectBelow("select", 26_000, ins, B.list(new bytes(256), x, x));
        bytes memory index = B.shape(TypeCode.I32, 256);
        ins = B.instruction(Opcode.GATHER, B.list(t, index), B.shape(TypeCode.F32, 256, 128), "");
        _expectBelow("gather", 19_000, ins, B.list(x, new bytes(1024)));
        ins = B.instruction(
            Opcode.PHILOX,
            B.list(B.shape(TypeCode.U32, 2), B.shape(TypeCode.U32)),
            B.shape(TypeCode.U32, 256),
            hex"00000001"
        );
        _expectBelow("philox", 21_000, ins, B.list(new bytes(8), new bytes(4)));
    }

    function test_element_gasOfOneBlock_succeeds() public {
        bytes memory x = B.repeated(hex"a1b2c33d", 256);
        bytes memory row = B.shape(TypeCode.I32, 1, 256);
        bytes memory one = B.shape(TypeCode.I64, 1, 1);
        _expectBelow("dot", 42_000, B.instruction(Opcode.DOT, B.list(row, row), one, ""), B.list(x, x));
        row = B.shape(TypeCode.I64, 1, 128);
        _expectBelow("sum", 26_000, B.instruction(Opcode.SUM, B.list(row), one, ""), B.list(x));
        _expectBelow("prefix_sum", 26_000, B.instruction(Opcode.PREFIX_SUM, B.list(row), row, ""), B.list(x));
        bytes memory ins = B.instruction(
            Opcode.SCATTER_SUM, B.list(B.shape(TypeCode.I32, 128), row), one, abi.encodePacked(uint32(1))
        );
        _expectBelow("scatter_sum", 35_000, ins, B.list(new bytes(512), x));
        row = B.shape(TypeCode.F32, 1, 256);
        one = B.shape(TypeCode.I32, 1, 1);
        _expectBelow("exponent", 30_000, B.instruction(Opcode.EXPONENT, B.list(row), one, ""), B.list(x));
        _expectBelow("argmax", 35_000, B.instruction(Opcode.ARGMAX, B.list(row), one, ""), B.list(x));
        one = B.shape(TypeCode.F32, 1, 1);
        _expectBelow("max", 34_000, B.instruction(Opcode.MAX, B.list(row), one, ""), B.list(x));
    }

    function test_fold_gasOf128Blocks_succeeds() public {
        uint64[] memory words = new uint64[](128);
        arbiter.fold(Opcode.MAX, words);
        _below("fold max", 75_000);
    }

    function _expectBelow(string memory name, uint256 limit, bytes memory ins, bytes[] memory data) private {
        arbiter.element(ins, 0, B.chunks(data));
        _below(name, limit);
    }

    /// @dev Checks the last call's gas.
    function _below(string memory name, uint256 limit) private {
        uint256 used = vm.lastCallGas().gasTotalUsed;
        emit log_named_uint(name, used);
        assertLt(used, limit, name);
    }
}
