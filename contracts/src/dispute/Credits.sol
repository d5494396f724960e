// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../interfaces/IDisputeGame.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";

/// @title Credits in the chain's coin: deposits are paid from them and to them, and only the owner can
/// withdraw.
/// @notice The contract's balance is at least the sum of all credits and of the deposits of all unanswered
/// nodes.
abstract contract Credits is IDisputeGame {
    /// @inheritdoc IDisputeGame
    mapping(address account => uint256) public override creditOf;

    /// @inheritdoc IDisputeGame
    function withdrawCredit() external override returns (uint256 amount) {
        amount = creditOf[msg.sender];
        // Before the coin is sent, so that a reentrant call finds nothing more.
        creditOf[msg.sender] = 0;
        emit CreditWithdrawn(msg.sender, amount);
        Address.sendValue(payable(msg.sender), amount);
    }
}
