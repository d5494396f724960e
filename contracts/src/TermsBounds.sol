// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITermsBounds} from "./interfaces/ITermsBounds.sol";
import {TermsCheck} from "./libraries/TermsCheck.sol";
import {Parameters} from "./types/Parameters.sol";
import {Terms} from "./types/Terms.sol";

/// @title TermsBounds: which terms a market accepts (dispute.md section 2, "post").
contract TermsBounds is ITermsBounds {
    /// @inheritdoc ITermsBounds
    function check(Terms calldata terms, Parameters calldata parameters, uint16 arithmetic) external pure {
        TermsCheck.check(terms, parameters, arithmetic);
    }
}
