// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Seat} from "../../src/types/Seats.sol";
import {JuriesHandler} from "./JuriesHandler.sol";

/// @title Lets honest accounts act before any of their time limits passes. None of their calls may be refused.
abstract contract HonestHandler is JuriesHandler {
    function _reach(uint64 time) internal override {
        if (vm.getBlockTimestamp() >= time) return;
        _duties();
        super._reach(time);
    }

    function _duties() internal override {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            _leaveGames(task);
            if (market.statusOf(task) != ITaskMarket.Status.Submitted) continue;
            (uint256[] memory numbers, Seat[] memory seats) = _seatsAndLooks(task);
            for (uint256 i; i < seats.length; ++i) {
                if (honest[seats[i].account] && _mayAttest(task, numbers[i], seats[i])) {
                    _attest(task, numbers[i]);
                }
                if (numbers[i] >= 32) _defend(task, numbers[i]);
            }
            _judge(task);
        }
    }

    /// @dev Honest accounts that are looked at open their digests and answer. Of the others, three in four
    /// open too.
    function _defend(TaskId task, uint256 look) private {
        bool isHonest = honest[_accountOf(task, _lookedAt(task, look))];
        bool opens = isHonest || uint256(keccak256(abi.encode(task, look))) % 4 != 0;
        if (opens && _mayReveal(task, look)) _reveal(task, look);
        if (!isHonest) return;
        ILooks.Look memory entry = looks.lookOf(task, look);
        if (entry.accused != 0 && vm.getBlockTimestamp() <= entry.until) _answer(task, look);
    }

    /// @dev An honest look that attested may have asked for the step tree. Once nobody can be accused any more
    /// it must be able to drop that game.
    function _leaveGames(TaskId task) private {
        ITaskMarket.Status status = market.statusOf(task);
        bool isUnpaid = status == ITaskMarket.Status.Unpaid;
        if (!isUnpaid && status != ITaskMarket.Status.Submitted) return;
        (uint256[] memory numbers, Seat[] memory found) = board.looksOf(task);
        for (uint256 i; i < numbers.length; ++i) {
            if (!found[i].attested || !honest[found[i].account] || !_mayDrop(task, numbers[i])) continue;
            _drop(
                task, numbers[i], found[i].account, isUnpaid ? bytes32("drop, unpaid") : bytes32("dropGame")
            );
        }
    }

    /// @dev Honest jurors vote, and open what they have. An item that one juror can fetch may be unavailable
    /// to another.
    function _judge(TaskId task) private {
        if (board.auditOf(task).claimant == 0 || board.auditOf(task).pending) return;
        for (uint256 slot; slot < market.termsOf(task).jurors; ++slot) {
            uint256 number = FIRST_JUROR + slot;
            Seat memory juror = board.seatOf(task, number);
            if (!honest[juror.account]) continue;
            bool fetched = uint256(keccak256(abi.encode(task, juror.account))) % 3 != 0;
            if (_mayAttest(task, number, juror)) _vote(task, number, fetched);
            if (_mayOpen(task, slot)) _open(task, slot);
        }
    }
}
