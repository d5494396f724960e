// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Offer} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Terms whose times are too short for the work or the data that they require, or too long for the
/// stall period: audit.md section 3.
/// @notice The honest accounts do 2 x 10^5 operations per second, which is what the 4 x 10^7 of a seat need
/// within 200 seconds.
contract ShortTimesTest is Deployment {
    uint64 private constant SPEED = 2e5;

    function setUp() public override {
        super.setUp();
        for (uint256 i; i < VERIFIERS; ++i) {
            vm.prank(verifiers[i]);
            board.resign();
        }
        delete verifiers;
        for (uint256 i; i < 16; ++i) {
            address honest = makeAddr(string.concat("honest ", vm.toString(i)));
            verifiers.push(honest);
            Offer memory offer = _offer();
            offer.speed = SPEED;
            _fund(honest);
            vm.prank(honest);
            board.register(1, offer);
        }
    }

    /// @dev A submitter that wants the result without paying: honest accounts could not attest in time, and
    /// each would lose a seat's fee and a draw fee.
    function test_draw_attestPeriodBelowAReplay_bindsNobody_succeeds() public {
        Terms memory terms = _terms();
        assertEq(_bound(terms), terms.verifiers);
        terms.attestPeriod = 199;
        assertEq(_bound(terms), 0);
    }

    /// @dev The solver's own look would accuse an honest seat, which could not replay within the move time
    /// and would lose its lock.
    function test_draw_moveTimeBelowAReplay_bindsNobody_succeeds() public {
        Terms memory terms = _terms();
        terms.lookChance = 10_000;
        terms.moveTime = terms.attestPeriod;
        assertEq(_bound(terms), terms.verifiers);
        terms.moveTime = 199;
        assertEq(_bound(terms), 0);
        // Looks at both segments may accuse at the same time, so it is not enough that each replay alone
        // fits.
        terms.moveTime = 100;
        assertEq(_bound(terms), 0);
        // Half the segments need half the time.
        terms.segmentsPerVerifier = 1;
        assertEq(_bound(terms), terms.verifiers);
    }

    /// @dev Without looks nobody accuses, so the move time need not cover replays.
    function test_draw_moveTimeBelowAReplay_withoutLooks_succeeds() public {
        Terms memory terms = _terms();
        terms.moveTime = 10;
        assertEq(_bound(terms), terms.verifiers);
    }

    /// @dev With the attestation period equal to the stall period, a single silent seat would end a task.
    /// With the longest period allowed, an account must be silent in each of eight draws before the task can
    /// be stalled.
    function test_stall_silentSeats_onlyAfterEightDraws_succeeds() public {
        Terms memory terms = _terms();
        terms.verifiers = 1;
        terms.attestPeriod = STALL_PERIOD;
        terms.challengePeriod = STALL_PERIOD + 20;
        _expectBounds("attestPeriod", STALL_PERIOD, 10, 210);
        _post(terms);
        (terms.attestPeriod, terms.challengePeriod) = (210, 400);
        TaskId task = _drawn(terms, 50 * UNIT);
        address[8] memory sat;
        for (uint256 draws = 1; draws < 8; ++draws) {
            sat[draws] = board.seatOf(task, 0).account;
            assertNotEq(sat[draws], address(0));
            for (uint256 earlier = 1; earlier < draws; ++earlier) {
                assertNotEq(sat[earlier], sat[draws]);
            }
            _silence(task);
            vm.expectPartialRevert(Refusals.TooEarly.selector);
            market.stall(task);
            board.redraw(task);
            _draw(task);
        }
        assertLe(vm.getBlockTimestamp(), board.auditOf(task).drawnAt + STALL_PERIOD);
        _attest(task, 0);
        _endWindow(task);
        market.settle(task);
        assertEq(vault.free(solver), FUNDS + 50 * UNIT);
    }

    /// @dev States that nobody can fetch in time: honest jurors would all vote no, and the honest solver
    /// would lose a part of its stake.
    function test_post_statesThatNoLineCarries_reverts() public {
        Terms memory terms = _terms();
        terms.jurors = 3;
        (terms.segmentsPerVerifier, terms.moveTime) = (1, terms.attestPeriod);
        // Three states within 200 seconds at 4 MiB per second.
        uint64 most = uint64(uint256(200 << 22) / 3);
        terms.stateBytes = most + 1;
        _expectBounds("stateBytes", most + 1, 1, most);
        _post(terms);
        terms.stateBytes = most;
        _post(terms);
        // Two states within a move time.
        terms.moveTime = 50;
        terms.stateBytes = (25 << 22) + 1;
        _expectBounds("stateBytes", terms.stateBytes, 1, 25 << 22);
        _post(terms);
    }

    // ------------------------------------------------------------------ inside

    /// @dev Number of accounts that a task's first draw binds. Reverts all changes afterwards.
    function _bound(Terms memory terms) private returns (uint256 count) {
        uint256 start = vm.snapshotState();
        _drawn(terms, 50 * UNIT);
        for (uint256 i; i < verifiers.length; ++i) {
            if (board.registrationOf(verifiers[i]).freeSince == type(uint40).max) ++count;
        }
        vm.revertToState(start);
    }
}
