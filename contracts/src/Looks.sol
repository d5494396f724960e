// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {ILooks} from "./interfaces/ILooks.sol";
import {Digests} from "./libraries/Digests.sol";
import {Errors} from "./libraries/Errors.sol";
import {TaskId} from "./types/Ids.sol";

/// @title Looks: who may take a seat's lock for what its attestation shows (dispute.md section 3).
contract Looks is ILooks {
    IAuditBoard private immutable BOARD;

    /// @inheritdoc ILooks
    /// @dev Per account, so that nobody can take another's commitment by copying it.
    mapping(address informer => mapping(bytes32 commitment => uint256)) public committedIn;

    constructor(IAuditBoard board) {
        BOARD = board;
    }

    /// @inheritdoc ILooks
    function commitInforming(bytes32 commitment) external {
        if (committedIn[msg.sender][commitment] != 0) revert Errors.AlreadyCommitted(commitment);
        committedIn[msg.sender][commitment] = block.number;
    }

    /// @inheritdoc ILooks
    function inform(TaskId task, uint256 seat, bytes32 digest, bytes32 salt) external {
        bytes32 commitment = keccak256(abi.encode(block.chainid, address(this), task, seat, msg.sender, salt));
        uint256 madeIn = committedIn[msg.sender][commitment];
        if (madeIn == 0) revert Errors.NotCommitted(commitment);
        if (madeIn == block.number) revert Errors.SameBlock(block.number);
        delete committedIn[msg.sender][commitment];
        bytes32 due = BOARD.attestationOf(task, seat);
        if (due == 0) revert Errors.NotAttested(task, seat);
        bytes32 given = Digests.attestation(digest, Digests.saltHash(salt));
        if (given != due) revert Errors.WrongAttestation(due, given);
        (address account, uint256 paid) = BOARD.caught(task, seat, msg.sender);
        emit Informed(task, seat, account, msg.sender, paid);
    }
}
