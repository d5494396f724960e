// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../interfaces/IAuditBoard.sol";
import {ITaskMarket} from "../interfaces/ITaskMarket.sol";
import {Cells} from "../libraries/Cells.sol";
import {Digests} from "../libraries/Digests.sol";
import {Refusals} from "../libraries/Refusals.sol";
import {TaskId} from "../types/Ids.sol";
import {Audit} from "../types/Seats.sol";
import {SeatCells} from "./SeatCells.sol";

/// @title Requesting a jury's draw, its votes, and its end: audit.md section 7. `Juries` decides the verdict.
abstract contract JuryVotes is SeatCells {
    using Cells for Cells.Table;

    /// @dev Only the first draws of a task may be for juries, so that claims leave enough draws for seats and
    /// looks.
    uint8 private constant JURY_DRAWS = 128;

    modifier onlyJuries() {
        _only(_juries());
        _;
    }

    /// @inheritdoc IAuditBoard
    function askJury(TaskId task, uint256 seat, uint256 jurors, uint48 purse) external onlyJuries {
        Audit storage audit = _audits[task];
        _requireNumber(task, audit, JURY_DRAWS);
        audit.claimant = uint8(seat) + 1;
        MARKET.drawAsked(task, false);
        _ask(task, audit, Cells.JURY, uint32((1 << jurors) - 1), purse);
    }

    /// @inheritdoc IAuditBoard
    function endJury(TaskId task, bool goesOn) external onlyJuries {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        for (uint256 juror = Cells.FIRST_JUROR; juror < Cells.COUNT; ++juror) {
            (uint256 cell, address account) = _seat(task, juror);
            if (cell == 0) continue;
            if (cell & Cells.ATTESTED == 0) {
                _silent(task, juror, cell, terms, false);
                continue;
            }
            // The next jury's votes use the same cells.
            _seats[task].set(juror, 0);
            delete attestationOf[task][juror];
            if (cell & Cells.CAUGHT == 0) _free(task, juror, cell, account);
        }
        Audit storage audit = _audits[task];
        audit.claimant = 0;
        if (!goesOn) return;
        uint64 until = _until(terms.attestPeriod);
        (audit.until, audit.informedAt) = (uint40(until), uint40(block.timestamp));
        MARKET.drawn(task, msg.sender, until);
    }

    /// @inheritdoc IAuditBoard
    function juryOf(TaskId task)
        external
        view
        returns (uint256 claimant, bool pending, uint64 until, uint256 yes, uint256 no)
    {
        Audit storage audit = _audits[task];
        (claimant, pending, until) = (audit.claimant, audit.pending, audit.until);
        for (uint256 slot; slot < 32; ++slot) {
            uint256 cell = _seats[task].get(Cells.FIRST_JUROR + slot);
            if (cell & Cells.YES != 0) yes |= 1 << slot;
            else if (cell & Cells.ATTESTED != 0) no |= 1 << slot;
        }
    }

    function _juries() internal view returns (address) {
        return MARKET.juries();
    }

    /// @dev Records a juror's vote: zeros are a no, which needs no opening.
    function _vote(TaskId task, uint256 juror, uint256 cell, bytes32 digest, bytes32 saltHash) internal {
        ITaskMarket.Status status = MARKET.statusOf(task);
        if (status != ITaskMarket.Status.Submitted) revert Refusals.WrongStatus(task, status);
        cell |= Cells.ATTESTED;
        if (digest | saltHash != 0) {
            cell |= Cells.YES;
            attestationOf[task][juror] = Digests.attestation(digest, saltHash);
        }
        _seats[task].set(juror, cell);
        emit Attested(task, juror, msg.sender, digest, saltHash);
    }
}
