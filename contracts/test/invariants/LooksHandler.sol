// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit, Seat} from "../../src/types/Seats.sol";
import {LeafTree} from "../dispute/LeafTree.sol";
import {Digested} from "./Digested.sol";

/// @title Actions on attestations, seats and looks of tasks, up to opening a digest.
abstract contract LooksHandler is Digested {
    function attest(uint256 seed, bool all) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0) return;
        (uint256[] memory numbers, Seat[] memory seats) = _seatsAndLooks(task);
        for (uint256 i; i < seats.length; ++i) {
            if ((all || i % 2 == seed % 2) && _mayAttest(task, numbers[i], seats[i])) {
                _attest(task, numbers[i]);
            }
        }
    }

    /// @notice Somebody reveals the salt of an attested seat, in any state of a submitted task in which no
    /// look may be known.
    function inform(uint256 seed) external action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        Audit memory audit = board.auditOf(task);
        bool over = audit.level != 0 && (!audit.pending || _time >= beacon.timeOf(audit.round));
        if (over || audit.pickedAt != 0) return;
        uint256 seats = board.seatsOf(task).length;
        for (uint256 i; i < seats; ++i) {
            uint256 seat = (seed % seats + i) % seats;
            Seat memory found = board.seatOf(task, seat);
            if (!found.attested || honest[found.account]) continue;
            ++done["inform"];
            return _informOf(task, seat);
        }
    }

    /// @notice The digests that some looks check are opened.
    function reveal(uint256 seed) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        (uint256[] memory numbers,) = board.looksOf(task);
        for (uint256 i; i < numbers.length; ++i) {
            if (seed >> i & 1 == 0 && _mayReveal(task, numbers[i])) _reveal(task, numbers[i]);
        }
    }

    /// @notice A look takes the lock of the seat or look it checks.
    function takeUnrevealed(uint256 seed) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        (uint256[] memory numbers,) = board.looksOf(task);
        for (uint256 i; i < numbers.length; ++i) {
            uint256 look = numbers[(seed % numbers.length + i) % numbers.length];
            Seat memory seat = board.seatOf(task, _lookedAt(task, look));
            if (seat.caught || honest[seat.account] || _isRevealed(task, look)) continue;
            _reach(_revealsUntil(task) + 1);
            // Most accounts open their digests in the meantime.
            if (_isRevealed(task, look)) return;
            looks.takeUnrevealed(task, look);
            ++done["takeUnrevealed"];
            return;
        }
    }

    /// @notice Nobody executes a draw of looks or of a jury, so it lapses.
    function lapse(uint256 seed) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        Audit memory audit = board.auditOf(task);
        if (!audit.pending || audit.level == 0 || seed % 3 != 0) return;
        _reach(uint64(beacon.timeOf(audit.round)) + STALL_PERIOD + 1);
        vm.prank(drawer);
        board.lapse(task);
        ++done["lapse"];
        if (audit.claimant != 0) ++done["lapse of a jury"];
    }

    // ------------------------------------------------------------------ inside

    function _seatsAndLooks(TaskId task)
        internal
        view
        returns (uint256[] memory numbers, Seat[] memory seats)
    {
        Seat[] memory first = board.seatsOf(task);
        (uint256[] memory others, Seat[] memory rest) = board.looksOf(task);
        numbers = new uint256[](first.length + others.length);
        seats = new Seat[](numbers.length);
        for (uint256 i; i < numbers.length; ++i) {
            if (i < first.length) (numbers[i], seats[i]) = (i, first[i]);
            else (numbers[i], seats[i]) = (others[i - first.length], rest[i - first.length]);
        }
    }

    function _mayAttest(TaskId task, uint256 number, Seat memory seat) internal view returns (bool) {
        return seat.account != address(0) && !seat.attested && vm.getBlockTimestamp() <= seat.until
            && board.auditOf(task).claimant != number + 1;
    }

    function _mayReveal(TaskId task, uint256 look) internal view returns (bool) {
        return !_isRevealed(task, look) && vm.getBlockTimestamp() <= _revealsUntil(task);
    }

    function _isRevealed(TaskId task, uint256 look) internal view returns (bool) {
        return looks.lookOf(task, look).revealed != 0;
    }

    function _revealsUntil(TaskId task) internal view returns (uint64) {
        return uint64(board.auditOf(task).pickedAt) + market.termsOf(task).moveTime;
    }

    function _lookedAt(TaskId task, uint256 look) internal view returns (uint256) {
        return look < 64 ? look % 32 / market.termsOf(task).segmentsPerVerifier : look - 32;
    }

    function _reveal(TaskId task, uint256 look) internal {
        uint256 seat = _lookedAt(task, look);
        bytes32[] memory parts = _parts(task, seat);
        uint256 place = look < 64 ? look % 32 % market.termsOf(task).segmentsPerVerifier : 0;
        bytes32 root = _segmentRoot(task, seat, board.segmentsOf(task, look)[0]);
        bytes32 secret = _secret(_accountOf(task, seat));
        looks.reveal(task, look, secret, LeafTree.root(parts), root, LeafTree.path(parts, place));
        ++done["reveal"];
    }

    function _informOf(TaskId task, uint256 seat) private {
        (bytes32 salt, bytes32 digest) = (_saltOf(task, seat), LeafTree.root(_parts(task, seat)));
        bytes32 commitment = keccak256(abi.encode(block.chainid, address(looks), task, seat, rival, salt));
        vm.prank(rival);
        looks.commitInforming(commitment);
        vm.roll(vm.getBlockNumber() + 1);
        vm.prank(rival);
        looks.inform(task, seat, digest, salt);
    }

    /// @dev Whether a seat or look of the drawn task has a silent account, and whether a seat has no account.
    function _missing(TaskId task) internal view returns (bool silent, bool empty) {
        Seat[] memory seats = board.seatsOf(task);
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].account == address(0)) empty = true;
            else if (!seats[i].attested) silent = true;
        }
        if (board.auditOf(task).looking != 0) silent = true;
    }
}
