// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit, Seat} from "../../src/types/Seats.sol";
import {Booked} from "./Booked.sol";

/// @title What may happen to attestations, seats and looks of tasks. Nobody opens a digest, so any look may take what it looks at.
abstract contract LooksHandler is Booked {
    /// @dev Locks that looks took, and draws of looks that lapsed.
    uint256 public unrevealed;
    uint256 public lapses;

    function attest(uint256 seed, bool all) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || _time > board.auditOf(task).until) return;
        Seat[] memory seats = board.seatsOf(task);
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].account == address(0) || seats[i].attested) continue;
            if (all || i % 2 == seed % 2) _attest(task, i);
        }
        uint256[] memory numbers;
        (numbers, seats) = board.looksOf(task);
        for (uint256 i; i < seats.length; ++i) {
            if (!seats[i].attested && (all || i % 2 == seed % 2)) _attest(task, numbers[i]);
        }
    }

    /// @notice Somebody shows the salt of an attested seat, in whatever state its task is while it is submitted and no look may be known.
    function inform(uint256 seed) external action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        Audit memory audit = board.auditOf(task);
        bool over = audit.level != 0 && (!audit.pending || _time >= beacon.timeOf(audit.round));
        if (over || audit.pickedAt != 0) return;
        uint256 seats = board.seatsOf(task).length;
        for (uint256 i; i < seats; ++i) {
            uint256 seat = (seed % seats + i) % seats;
            if (board.seatOf(task, seat).attested) return _inform(task, seat, rival);
        }
    }

    /// @notice A look takes the lock of what it looks at.
    function takeUnrevealed(uint256 seed) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        (uint256[] memory numbers,) = board.looksOf(task);
        for (uint256 i; i < numbers.length; ++i) {
            uint256 look = numbers[(seed % numbers.length + i) % numbers.length];
            uint256 each = market.termsOf(task).segmentsPerVerifier;
            if (board.seatOf(task, look < 64 ? look % 32 / each : look - 32).caught) continue;
            _reach(uint64(board.auditOf(task).pickedAt) + market.termsOf(task).moveTime + 1);
            looks.takeUnrevealed(task, look);
            ++unrevealed;
            return;
        }
    }

    /// @notice Nobody executes a draw of looks.
    function lapse(uint256 seed) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        Audit memory audit = board.auditOf(task);
        if (!audit.pending || audit.level == 0 || seed % 3 != 0) return;
        _reach(uint64(beacon.timeOf(audit.round)) + STALL_PERIOD + 1);
        vm.prank(drawer);
        board.lapse(task);
        ++lapses;
    }

    /// @dev Whether a seat of the drawn task, or a look, has a silent account, and whether a seat has none.
    function _missing(TaskId task) internal view returns (bool silent, bool empty) {
        Seat[] memory seats = board.seatsOf(task);
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].account == address(0)) empty = true;
            else if (!seats[i].attested) silent = true;
        }
        if (board.auditOf(task).looking != 0) silent = true;
    }
}
