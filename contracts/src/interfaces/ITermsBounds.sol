// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Parameters} from "../types/Parameters.sol";
import {Terms} from "../types/Terms.sol";

/// @title Bounds on every number of a task's terms, in a separate contract because the market has no room for
/// them.
interface ITermsBounds {
    /// @notice Reverts with the first field that breaks its bounds.
    /// @param arithmetic The version that the deployment's Arbiter implements.
    function check(Terms calldata terms, Parameters calldata parameters, uint16 arithmetic) external pure;
}
