// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Offer} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title A solver has honest accounts drawn for its own task, the bait, just before it submits a false
/// result (docs/security.md section 4).
/// @notice Not prevented, but priced: an account takes no seat of a task that pays less than its floor or
/// binds it longer than it offers. The tests state the price, so that a change is noticed.
contract BoundAccountsTest is Deployment {
    /// @dev The honest offers' minimum fee of a seat. A seat of the victim's task pays four times as much.
    uint112 private constant FLOOR = 1e18;
    /// @dev Their longest time: the time for which the victim's terms bind a seat.
    uint32 private constant PERIOD_OFFERED = 400;

    address[3] private own;

    function setUp() public override {
        super.setUp();
        delete verifiers;
        for (uint256 i; i < VERIFIERS; ++i) {
            address honest = makeAddr(string.concat("honest ", vm.toString(i)));
            verifiers.push(honest);
            Offer memory offer = _offer();
            (offer.seatFee, offer.period) = (FLOOR, PERIOD_OFFERED);
            _register(honest, offer);
        }
        for (uint256 i; i < 3; ++i) {
            own[i] = makeAddr(string.concat("own ", vm.toString(i)));
            Offer memory offer = _offer();
            // The offer is too small for the bait's states, so the bait does not bind these accounts.
            (offer.fee, offer.stateBytes) = (0, _terms().stateBytes);
            _register(own[i], offer);
        }
        // The deployment's accounts, whose offers have no floor, do not take part.
        for (uint256 i; i < VERIFIERS; ++i) {
            vm.prank(makeAddr(string.concat("verifier ", vm.toString(i))));
            board.resign();
        }
    }

    /// @dev A seat of the bait pays one token unit less than the floor: nobody takes it, and the victim's
    /// draw finds the same accounts as without the bait.
    function test_draw_afterABaitBelowTheFloor_findsTheSameAccounts_succeeds() public {
        address[3] memory without = _victimsSeats(_noBait());
        address[3] memory with = _victimsSeats(_bait(FLOOR - 1));
        for (uint256 i; i < 3; ++i) {
            assertEq(with[i], without[i]);
        }
    }

    /// @dev The bait would bind its accounts a second longer than they offer.
    function test_draw_afterABaitOfALongPeriod_findsTheSameAccounts_succeeds() public {
        Terms memory bait = _bait(FLOOR);
        ++bait.challengePeriod;
        address[3] memory without = _victimsSeats(_noBait());
        address[3] memory with = _victimsSeats(bait);
        for (uint256 i; i < 3; ++i) {
            assertEq(with[i], without[i]);
        }
    }

    /// @dev A seat with two segments pays the floor, but a look pays one segment's fee, half of it: the bait
    /// binds nobody.
    function test_draw_afterABaitWhoseLooksPayLess_bindsNobody_succeeds() public {
        Terms memory bait = _bait(FLOOR / 2);
        (bait.segmentsPerVerifier, bait.lookChance) = (2, 10_000);
        bait.challengePeriod = 211;
        bait.moveTime = bait.attestPeriod = 10;
        TaskId task = _assigned(bait, 0);
        _submit(task);
        _draw(task);
        _assertBound(0);
        assertEq(board.seatOf(task, 0).account, address(0));
    }

    /// @dev A bait that pays the floor binds all honest accounts, so the attacker's own accounts get the
    /// victim's seats. The price is the sum of the floors and one draw, plus gas; compare it with the value
    /// of a false result and with the stake.
    function test_draw_afterABaitAtTheFloor_costsTheSumOfFloors_succeeds() public {
        Terms memory bait = _bait(FLOOR);
        TaskId first = _assigned(bait, 0);
        TaskId victim = _assigned(_terms(), 80 * UNIT);
        uint256 before = vault.free(submitter) + _remaining(market.taskOf(first).escrow);
        _submit(first);
        _submit(victim);
        _draw(first);
        _draw(victim);
        _assertBound(VERIFIERS);
        for (uint256 i; i < 3; ++i) {
            address sits = board.seatOf(victim, i).account;
            assertTrue(sits == own[0] || sits == own[1] || sits == own[2], "an honest account");
        }
        _attestAll(first);
        _endWindow(first);
        market.settle(first);
        assertEq(before - vault.free(submitter), VERIFIERS * uint256(FLOOR) + DRAW_FEE);
        for (uint256 i; i < VERIFIERS; ++i) {
            assertEq(vault.free(verifiers[i]), FUNDS - SEAT_STAKE + FLOOR);
        }
    }

    // ------------------------------------------------------------------ inside

    function _register(address account, Offer memory offer) private {
        _fund(account);
        vm.prank(account);
        board.register(1, offer);
    }

    /// @dev As many seats as there are honest accounts, one segment of one operation each. Its states are too
    /// large for the attacker's own accounts.
    function _bait(uint128 seatFee) private view returns (Terms memory bait) {
        bait = _terms();
        (bait.stepOperations, bait.segmentSteps, bait.thinning) = (1, 1, 1);
        (bait.budget, bait.restitution, bait.auditFee) = (1, 0, seatFee);
        (bait.verifiers, bait.segmentsPerVerifier) = (uint16(VERIFIERS), 1);
        bait.stateBytes = _terms().stateBytes + 1;
    }

    /// @dev A task with as many seats, whose states are too large for every offer.
    function _noBait() private view returns (Terms memory bait) {
        bait = _bait(0);
        bait.stateBytes = _offer().stateBytes + 1;
    }

    /// @dev The accounts in the victim's seats if its task is submitted after the bait, which binds no honest
    /// account. Reverts all changes afterwards.
    function _victimsSeats(Terms memory bait) private returns (address[3] memory seats) {
        uint256 start = vm.snapshotState();
        TaskId first = _assigned(bait, 0);
        TaskId victim = _assigned(_terms(), 80 * UNIT);
        _submit(first);
        _submit(victim);
        _draw(first);
        _assertBound(0);
        _draw(victim);
        for (uint256 i; i < 3; ++i) {
            seats[i] = board.seatOf(victim, i).account;
        }
        vm.revertToState(start);
    }

    function _assertBound(uint256 count) private view {
        uint256 bound;
        for (uint256 i; i < VERIFIERS; ++i) {
            if (board.registrationOf(verifiers[i]).freeSince == type(uint40).max) ++bound;
        }
        assertEq(bound, count);
    }
}
