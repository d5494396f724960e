// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title TestToken
/// @notice An ERC-20 that anyone may mint, for development chains and tests. Never deploy it where real value
/// is at stake.
contract TestToken is ERC20 {
    constructor() ERC20("Assay Test Token", "TASSAY") {}

    /// @notice Mints `amount` of the smallest unit to `to`.
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}
