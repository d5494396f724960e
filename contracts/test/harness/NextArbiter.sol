// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Arbiter} from "../../src/Arbiter.sol";

/// @title An arbiter of the next arithmetic version, for tests; it judges like version 1.
contract NextArbiter {
    Arbiter private immutable FIRST = new Arbiter();

    /// @notice As in IArbiter.
    function arithmetic() external pure returns (uint16) {
        return 2;
    }

    /// @notice Forwards every other call of IArbiter to version 1, including reverts.
    fallback(bytes calldata question) external returns (bytes memory) {
        (bool answered, bytes memory answer) = address(FIRST).staticcall(question);
        if (answered) return answer;
        assembly ("memory-safe") {
            revert(add(answer, 32), mload(answer))
        }
    }
}
