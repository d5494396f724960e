// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IStakeVault} from "../../src/interfaces/IStakeVault.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @notice Burns a hundredth of every transfer.
contract FeeToken is ERC20 {
    constructor() ERC20("Fee", "FEE") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function _update(address from, address to, uint256 amount) internal override {
        if (from == address(0) || to == address(0)) return super._update(from, to, amount);
        uint256 fee = amount / 100;
        super._update(from, address(0), fee);
        super._update(from, to, amount - fee);
    }
}

/// @notice While `refusing`, moves nothing and returns false instead of reverting.
contract FalseToken is ERC20 {
    bool public refusing;

    constructor() ERC20("False", "FALSE") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function refuse(bool refusing_) external {
        refusing = refusing_;
    }

    function transfer(address to, uint256 amount) public override returns (bool) {
        return !refusing && super.transfer(to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) public override returns (bool) {
        return !refusing && super.transferFrom(from, to, amount);
    }
}

/// @notice Returns true for every transfer and moves nothing.
contract HollowToken {
    function balanceOf(address) external pure returns (uint256) {
        return 7;
    }

    function transferFrom(address, address, uint256) external pure returns (bool) {
        return true;
    }
}

/// @notice Calls the vault back during every transfer, and records the result.
contract ReenteringToken is ERC20 {
    IStakeVault public vault;
    bytes public message;
    bool public entered;

    constructor() ERC20("Reentering", "RE") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function arm(IStakeVault vault_, bytes calldata message_) external {
        (vault, message) = (vault_, message_);
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (message.length == 0) return;
        (entered,) = address(vault).call(message);
    }
}
