// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Claiming} from "./Claiming.sol";

/// @title Any votes, objections and openings: every account ends with the amount in audit.md section 8, and
/// no tokens are created or lost.
contract AnyJuryTest is Claiming {
    /// @dev The expected outcome: slots of yes votes that stand, of no votes, of jurors that did not open,
    /// and of paid jurors; amounts.
    struct Due {
        uint256 stands;
        uint256 no;
        uint256 liars;
        IJuries.Verdict verdict;
        uint256 winners;
        uint256 share;
        uint256 burned;
    }

    /// forge-config: default.fuzz.runs = 64
    function testFuzz_close_anyVotes_succeeds(uint8 size, uint32 yes, uint32 no, uint32 opened, bool objects)
        public
    {
        jurors = uint8(bound(size, 3, 9));
        uint256 all = (1 << jurors) - 1;
        _voted(3, yes & all, no & all & ~yes);
        objects = objects && yes & all != 0 && 2 * _bits(no & all & ~yes) <= jurors;
        if (objects) {
            _object(0, _walk(0, 1));
            _open(yes & opened & all);
        }
        address[] memory sat = new address[](jurors);
        for (uint256 slot; slot < jurors; ++slot) {
            sat[slot] = _account(FIRST + slot);
        }
        address claimant = _claimant();
        Due memory due = _due(yes & all, no & all & ~uint256(yes), objects, opened);
        _reach(vm.getBlockTimestamp() + MOVE_TIME + 1);
        vm.expectEmit();
        emit IJuries.Judged(task, 0, 3, due.verdict, _bits(due.stands), _bits(due.no));
        _close();
        _assertPaid(sat, claimant, due, all);
        _assertConserved();
        _assertEnd(due);
    }

    function _due(uint256 yes, uint256 no, bool objects, uint256 opened)
        private
        view
        returns (Due memory due)
    {
        if (objects) due.liars = yes & ~opened;
        (due.stands, due.no) = (yes & ~due.liars, no);
        (due.verdict, due.winners) = (IJuries.Verdict.Undecided, due.stands | no);
        if (_bits(due.stands) > jurors / 2) {
            (due.verdict, due.winners) = (IJuries.Verdict.Available, due.stands);
        }
        if (_bits(no) > jurors / 2) (due.verdict, due.winners) = (IJuries.Verdict.Withheld, no);
        due.share = uint256(SEAT_FEE) / jurors;
        uint256 paid = _bits(due.winners) * due.share;
        uint256 silent = jurors - _bits(yes) - _bits(no);
        due.burned = SEAT_FEE - paid + silent * PENALTY + _bits(due.liars) * LOCK;
        if (due.verdict == IJuries.Verdict.Withheld) due.burned += STAKE / 16 - BACK;
    }

    function _assertPaid(address[] memory sat, address claimant, Due memory due, uint256 all) private view {
        uint256 voted = due.stands | due.no | due.liars;
        for (uint256 slot; slot < sat.length; ++slot) {
            uint256 bit = 1 << slot;
            assertEq(_free(sat[slot]), FUNDS - SEAT_STAKE + (due.winners & bit != 0 ? due.share : 0));
            uint256 lost = due.liars & bit != 0 ? LOCK : all & ~voted & bit != 0 ? PENALTY : 0;
            assertEq(_stakeOf(sat[slot]), SEAT_STAKE - lost);
            assertEq(board.registrationOf(sat[slot]).suspended, lost != 0);
            uint256 since = lost == 0 ? vm.getBlockTimestamp() : type(uint40).max;
            assertEq(board.registrationOf(sat[slot]).freeSince, since);
            assertEq(_account(FIRST + slot), address(0));
        }
        uint256 got = due.verdict == IJuries.Verdict.Withheld ? BACK : 0;
        assertEq(_free(claimant), FUNDS - SEAT_STAKE - BACK + got);
        assertEq(vault.burned(), due.burned);
    }

    /// @dev The task continues to settlement, or is closed unpaid.
    function _assertEnd(Due memory due) private {
        uint256 left = _remaining(market.taskOf(task).stake);
        if (due.verdict != IJuries.Verdict.Withheld) {
            assertEq(left, STAKE);
            _attest(0);
            _attest(1);
            _settle();
            assertEq(_free(solver), FUNDS + PRICE);
        } else {
            assertEq(left, STAKE - STAKE / 16);
            assertEq(uint256(market.taskOf(task).status), uint256(ITaskMarket.Status.Unpaid));
            _reach(uint256(market.taskOf(task).challengeUntil) + 1);
            market.closeStalled(task);
            assertEq(_free(solver), FUNDS - STAKE + left);
        }
        assertEq(_escrow(), 0);
        _releaseAll();
        _assertConserved();
    }

    function _bits(uint256 slots) private pure returns (uint256 count) {
        for (; slots != 0; slots >>= 1) {
            count += slots & 1;
        }
    }
}
