// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";

/// @title Accounts in the chain's coin: what deposits are paid from and paid to, each fetched by its owner alone.
/// @notice The contract's balance is the sum of all credits and of the deposits of all unanswered nodes.
abstract contract Credits is IDisputeGame {
    mapping(address account => uint256) internal _credits;

    /// @inheritdoc IDisputeGame
    function withdrawCredit() external override returns (uint256 amount) {
        amount = _credits[msg.sender];
        // Before the coin leaves: whoever calls back finds nothing more.
        _credits[msg.sender] = 0;
        emit CreditWithdrawn(msg.sender, amount);
        Address.sendValue(payable(msg.sender), amount);
    }

    /// @inheritdoc IDisputeGame
    function creditOf(address account) external view override returns (uint256) {
        return _credits[account];
    }
}
