// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Digests} from "../../src/libraries/Digests.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit, Seat} from "../../src/types/Seats.sol";
import {AccusationsHandler} from "./AccusationsHandler.sol";

/// @title Claims that data are withheld, votes on them, objections, openings and verdicts.
abstract contract JuriesHandler is AccusationsHandler {
    mapping(TaskId task => mapping(uint256 seat => uint40 registration)) private _claimedBy;

    /// @notice An account in a seat or look claims that it cannot fetch an item.
    function claimItem(uint256 seed) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || market.termsOf(task).jurors == 0) return;
        if (juries.claimOf(task).account != address(0)) return;
        (uint256[] memory numbers, Seat[] memory seats) = _seatsAndLooks(task);
        for (uint256 i; i < seats.length; ++i) {
            uint256 k = (seed % seats.length + i) % seats.length;
            if (honest[seats[k].account] || !_mayAttest(task, numbers[k], seats[k])) continue;
            if (_claimedBy[task][numbers[k]] == seats[k].registration) continue;
            _claimedBy[task][numbers[k]] = seats[k].registration;
            vm.prank(seats[k].account);
            juries.claim(task, numbers[k], uint32(seed >> 8) % (CONSTANTS + 1));
            ++done[numbers[k] < 32 ? bytes32("claim of a seat") : bytes32("claim of a look")];
            return;
        }
    }

    /// @notice Some jurors vote, most of them the same way. Honest jurors vote elsewhere (`HonestHandler`).
    function vote(uint256 seed) public action {
        (TaskId task, bool drawn) = _claimOf(seed, true);
        if (!drawn) return;
        for (uint256 slot; slot < market.termsOf(task).jurors; ++slot) {
            Seat memory juror = board.seatOf(task, FIRST_JUROR + slot);
            if (honest[juror.account] || !_mayAttest(task, FIRST_JUROR + slot, juror)) continue;
            uint256 choice = uint256(keccak256(abi.encode(seed, slot))) % 8;
            // Most vote as a bit of the seed says; otherwise neither side would have a majority.
            if (choice != 0) _vote(task, FIRST_JUROR + slot, choice > 1 == (seed >> 128 & 1 == 0));
        }
    }

    function object(uint256 seed) public action {
        (TaskId task, bool drawn) = _claimOf(seed, true);
        if (!drawn || juries.claimOf(task).until != 0) return;
        (,, uint64 until,,) = board.juryOf(task);
        _reach(until + 1);
        if (!_mayObject(task) || vm.getBlockTimestamp() > until + market.termsOf(task).moveTime) return;
        vm.prank(juries.claimOf(task).account);
        juries.object(task, 0, uint32(seed));
        ++done["object"];
    }

    /// @notice Jurors that have the chunk open what the objection names.
    function open(uint256 seed) external action {
        (TaskId task, bool drawn) = _claimOf(seed, true);
        if (!drawn) return;
        for (uint256 slot; slot < market.termsOf(task).jurors; ++slot) {
            if (_mayOpen(task, slot)) _open(task, slot);
        }
    }

    function close(uint256 seed) public action {
        (TaskId task, bool drawn) = _claimOf(seed, true);
        if (!drawn) return;
        (,, uint64 until,,) = board.juryOf(task);
        _reach(until + 1);
        if (juries.claimOf(task).until != 0) until = juries.claimOf(task).until;
        else if (_mayObject(task)) until += market.termsOf(task).moveTime;
        _reach(until + 1);
        juries.close(task);
        bool goesOn = market.statusOf(task) == ITaskMarket.Status.Submitted;
        ++done[goesOn ? bytes32("verdict that goes on") : bytes32("verdict that it is withheld")];
    }

    /// @notice Drops a claim that will get no verdict.
    function dropClaim(uint256 seed) public action {
        (TaskId task, bool lost) = _claimOf(seed, false);
        if (!lost) return;
        juries.drop(task);
        ++done["drop of a claim"];
    }

    // ------------------------------------------------------------------ inside

    /// @dev A task with a claim whose jury is drawn or, unless `drawn`, with a claim that will not be judged.
    function _claimOf(uint256 seed, bool drawn) internal view returns (TaskId task, bool found) {
        uint256 count = market.tasks();
        for (uint256 i; i < count; ++i) {
            task = TaskId.wrap((seed % count + i) % count + 1);
            if (juries.claimOf(task).account == address(0)) continue;
            Audit memory audit = board.auditOf(task);
            bool live = market.statusOf(task) == ITaskMarket.Status.Submitted && audit.claimant != 0;
            if (drawn ? live && !audit.pending : !live) return (task, true);
        }
        return (task, false);
    }

    function _vote(TaskId task, uint256 juror, bool yes) internal {
        bytes32 digest = yes ? _digestOf(task, juror, juries.claimOf(task).item) : bytes32(0);
        bytes32 saltHash = yes ? Digests.saltHash(_saltOf(task, juror)) : bytes32(0);
        vm.prank(_accountOf(task, juror));
        board.attest(task, juror, digest, saltHash);
        ++done[yes ? bytes32("yes") : bytes32("no")];
    }

    /// @dev The juror has voted yes, has the requested chunk, and has not opened it, and there is still time.
    function _mayOpen(TaskId task, uint256 slot) internal view returns (bool) {
        IJuries.Claim memory entry = juries.claimOf(task);
        if (entry.until == 0 || vm.getBlockTimestamp() > entry.until) return false;
        (,,, uint256 yes,) = board.juryOf(task);
        return yes >> slot & 1 == 1 && entry.opened >> slot & 1 == 0 && !_lies(task, FIRST_JUROR + slot);
    }

    function _open(TaskId task, uint256 slot) internal {
        uint256 item = juries.claimOf(task).item;
        uint256 juror = FIRST_JUROR + slot;
        bytes32 secret = _secret(_accountOf(task, juror));
        juries.open(task, juror, secret, _digestOf(task, juror, item), _openingOf(item));
        ++done["open"];
    }

    /// @dev Somebody voted yes, and no more than half of the jury voted no.
    function _mayObject(TaskId task) private view returns (bool) {
        (,,, uint256 yes, uint256 no) = board.juryOf(task);
        uint256 count;
        for (; no != 0; no &= no - 1) {
            ++count;
        }
        return yes != 0 && 2 * count <= market.termsOf(task).jurors;
    }
}
