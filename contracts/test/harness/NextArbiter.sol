// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Arbiter} from "../../src/Arbiter.sol";

/// @title An arbiter of the next version of the arithmetic, for tests: it judges as version 1 does.
contract NextArbiter {
    Arbiter private immutable FIRST = new Arbiter();

    /// @notice As IArbiter has it.
    function arithmetic() external pure returns (uint16) {
        return 2;
    }

    /// @notice Every other question of IArbiter, and every revert, is version 1's.
    fallback(bytes calldata question) external returns (bytes memory) {
        (bool answered, bytes memory answer) = address(FIRST).staticcall(question);
        if (answered) return answer;
        assembly ("memory-safe") {
            revert(add(answer, 32), mload(answer))
        }
    }
}
