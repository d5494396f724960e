// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../interfaces/IAuditBoard.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {Cells} from "../libraries/Cells.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {TaskId} from "../types/Ids.sol";
import {Audit, Registration} from "../types/Seats.sol";
import {Draws} from "./Draws.sol";

/// @title The holders of seats, looks and jury seats, and penalties of their accounts: audit.md section 3.
abstract contract SeatCells is Draws {
    using Cells for Cells.Table;

    /// @inheritdoc IAuditBoard
    mapping(TaskId task => mapping(uint256 seat => bytes32)) public attestationOf;

    function _only(address due) internal view {
        if (msg.sender != due) revert Refusals.NotAllowed(due, msg.sender);
    }

    /// @dev The cell and the account of a seat, look or juror; zeros if it is empty or does not exist.
    function _seat(TaskId task, uint256 seat) internal view returns (uint256 cell, address account) {
        if (seat >= Cells.COUNT) return (0, address(0));
        cell = _seats[task].get(seat);
        account = _accounts[Cells.holder(cell)].account;
    }

    /// @dev What a task asks of its seats; reverts unless it is Submitted.
    function _submitted(TaskId task) internal view returns (ITaskMarket.SeatTerms memory terms) {
        terms = _termsOf(task);
        if (terms.status != ITaskMarket.Status.Submitted) revert Refusals.WrongStatus(task, terms.status);
    }

    /// @dev Requires that the task has had fewer than `most` draws.
    function _requireNumber(TaskId task, Audit storage audit, uint8 most) internal view {
        if (audit.draws >= most) revert Refusals.NoDrawsLeft(task, most);
    }

    /// @dev Frees the account that the seat bound.
    function _free(TaskId task, uint256 seat, uint256 cell, address account) internal {
        _accounts[Cells.holder(cell)].freeSince = uint40(block.timestamp);
        emit Released(task, seat, account);
    }

    /// @dev Empties the seat and penalises its silent account. If `pays`, the account pays for a draw, and
    /// `purse` is the lock with the fee.
    function _silent(TaskId task, uint256 seat, uint256 cell, ITaskMarket.SeatTerms memory terms, bool pays)
        internal
        returns (uint48 purse)
    {
        _seats[task].set(seat, 0);
        // The account's stake is still whole, and TermsCheck ensures that a seat's lock covers the penalty.
        uint256 penalty = terms.fee + DRAW_FEE;
        address account;
        (account, purse) = _suspend(cell, penalty, pays);
        emit Silent(task, seat, account, penalty);
    }

    /// @dev Suspends the account that a cell names, until it resumes or leaves. It loses `amount` of its
    /// stake. If `pays`, the draw fee out of that goes to a new lock, `purse`; the rest burns.
    function _suspend(uint256 cell, uint256 amount, bool pays)
        internal
        returns (address account, uint48 purse)
    {
        Registration storage registration = _accounts[Cells.holder(cell)];
        account = registration.account;
        registration.suspended = true;
        uint256 lock = registration.lock;
        if (pays) {
            VAULT.release(lock, DRAW_FEE);
            purse = uint48(VAULT.lock(account, DRAW_FEE));
            amount -= DRAW_FEE;
        }
        VAULT.burn(lock, amount);
    }
}
