// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../interfaces/ITaskMarket.sol";

/// @title What the vault, the market and the audit board refuse, and why: what came and what was due.
library Errors {
    // ------------------------------------------------------------------ who

    /// @notice `caller` may not call this; only `due` may.
    error NotAllowed(address caller, address due);
    /// @notice `caller` is none of the vault's modules.
    error NotModule(address caller);
    /// @notice The addresses were set before; they are never changed.
    error AlreadyInitialised();
    /// @notice There is no contract at `account`.
    error NoCode(address account);

    // ------------------------------------------------------------------ amounts

    /// @notice `account` has `available` free tokens and needs `needed`: deposit more.
    error NotEnoughFree(address account, uint256 available, uint256 needed);
    /// @notice The token delivered nothing: a deposit of 0, or a token that keeps everything.
    error NothingArrived(uint256 asked);
    /// @notice No such lock.
    error UnknownLock(uint256 lock);
    /// @notice The lock is free at `until`, 0 when its module has not begun to unbond it.
    error StillBonded(uint256 lock, uint64 until);

    // ------------------------------------------------------------------ terms

    /// @notice The field `field` is `value`; it must lie in [least, most].
    error OutOfBounds(string field, uint256 value, uint256 least, uint256 most);
    /// @notice The field `field` must not be zero.
    error Zero(string field);

    // ------------------------------------------------------------------ time and order

    /// @notice Task ids are 1 ... tasks.
    error UnknownTask(uint256 task);
    /// @notice The task is in status `status`, where this cannot be done.
    error WrongStatus(uint256 task, ITaskMarket.Status status);
    /// @notice Too late: this was possible until `until`.
    error TooLate(uint64 until, uint256 time);
    /// @notice Too early: this is possible after `until`.
    error TooEarly(uint64 until, uint256 time);
    /// @notice `openGames` games are open on the task; this waits for their end.
    error GamesOpen(uint256 task, uint32 openGames);
    /// @notice A bid must be lower than the best one.
    error BidNotLower(uint128 price, uint128 best);

    // ------------------------------------------------------------------ commitments

    /// @notice A tree of `given` leaves came; `least` to `most` are due.
    error TreeSize(uint32 given, uint32 least, uint32 most);
    /// @notice Leaf `index` is not `leaf` in the tree of this root: the path leads to `computed`.
    error LeafNotInTree(uint32 index, bytes32 leaf, bytes32 root, bytes32 computed);
    /// @notice A proof came that this move has no use for.
    error UnexpectedProof();

    // ------------------------------------------------------------------ audit

    /// @notice The account has live slots: resign first.
    error AlreadyRegistered(address verifier);
    /// @notice The account has no live slots.
    error NotRegistered(address verifier);
    /// @notice The header's hash is not the chain's hash of this block; 0 when the chain does not know it (any more).
    error WrongHeader(uint64 number, bytes32 given, bytes32 due);
    /// @notice The draw block's hash can still be had, or is still to come: draw.
    error DrawStillPossible(uint256 task, uint64 drawBlock);
    /// @notice All draws of the task were missed: void it.
    error DrawLost(uint256 task);
    /// @notice The task was drawn before.
    error AlreadyDrawn(uint256 task);
    /// @notice The task has `duties` duties, numbered from 0.
    error UnknownDuty(uint256 task, uint256 duty, uint256 duties);
    /// @notice The duty was attested before.
    error AlreadyAttested(uint256 task, uint256 duty);
    /// @notice Attestations that the terms ask for are missing.
    error NotSatisfied(uint256 task);
    /// @notice The task has what it needs to be settled, or can still get it.
    error NotVoidable(uint256 task);
}
