// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

/// @title Gas against tests/vectors/gas.json, which is committed: a move that got more expensive is red.
/// @notice Above the record by more than TOLERANCE fails; so does below it by as much, for a record that is too high
/// would let the next regression pass. Record again what has changed on purpose.
abstract contract Snapshot is Test {
    /// @notice Hundredths of the recorded gas.
    uint256 private constant TOLERANCE = 2;
    string private constant FILE = "tests/vectors/gas.json";

    /// @dev The last transaction's gas, cold storage, calldata and the 21,000 included. Only in isolated tests.
    function _matches(string memory move, uint256 limit) internal returns (uint256 used) {
        used = vm.lastCallGas().gasTotalUsed;
        emit log_named_uint(move, used);
        assertLt(used, limit, move);
        uint256 recorded = vm.parseJsonUint(vm.readFile(FILE), string.concat('$["', move, '"]'));
        assertApproxEqAbs(used, recorded, recorded * TOLERANCE / 100, move);
    }
}
