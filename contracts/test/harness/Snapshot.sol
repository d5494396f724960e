// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

/// @title Compares gas with the committed tests/vectors/gas.json: a more expensive move fails the test.
/// @notice Fails if the gas is above or below the record by more than TOLERANCE: a record that is too high
/// would hide the next regression. Re-record intended changes.
abstract contract Snapshot is Test {
    /// @notice In percent of the recorded gas.
    uint256 private constant TOLERANCE = 2;
    string private constant FILE = "tests/vectors/gas.json";

    /// @dev Checks the gas of the last call against the limit and the record, and returns it. In an isolated
    /// test this is a whole transaction's gas, including cold storage, calldata and the 21,000.
    function _matches(string memory move, uint256 limit) internal returns (uint256 used) {
        used = vm.lastCallGas().gasTotalUsed;
        emit log_named_uint(move, used);
        assertLt(used, limit, move);
        uint256 recorded = vm.parseJsonUint(vm.readFile(FILE), string.concat('$["', move, '"]'));
        assertApproxEqAbs(used, recorded, recorded * TOLERANCE / 100, move);
    }
}
