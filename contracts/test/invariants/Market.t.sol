// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Bids} from "../../src/libraries/Bids.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit, Registration, Seat} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IVault} from "../harness/Production.sol";
import {MarketHandler} from "./MarketHandler.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Test} from "forge-std/Test.sol";

/// @title What always holds (dispute.md section 10), as far as vault, market and audit board can break it.
contract MarketInvariants is Test {
    uint256 private constant ACTIONS = 29;

    MarketHandler private handler;
    IVault private vault;
    ITaskMarket private market;
    IAuditBoard private board;

    function setUp() public {
        handler = new MarketHandler();
        handler.setUp();
        (vault, market, board) = handler.contracts();
        bytes4[] memory actions = new bytes4[](ACTIONS);
        actions[0] = handler.post.selector;
        actions[1] = handler.bid.selector;
        actions[2] = handler.assign.selector;
        actions[3] = handler.progress.selector;
        actions[4] = handler.submit.selector;
        actions[5] = handler.expire.selector;
        actions[6] = handler.draw.selector;
        actions[7] = handler.exhaust.selector;
        actions[8] = handler.attest.selector;
        actions[9] = handler.finish.selector;
        actions[10] = handler.openGame.selector;
        actions[11] = handler.closeGame.selector;
        actions[12] = handler.convict.selector;
        actions[13] = handler.withdraw.selector;
        actions[14] = handler.turnOver.selector;
        actions[15] = handler.bidLate.selector;
        actions[16] = handler.stall.selector;
        actions[17] = handler.closeStalled.selector;
        actions[18] = handler.release.selector;
        actions[19] = handler.resume.selector;
        (actions[20], actions[21]) = (handler.claim.selector, handler.burnRest.selector);
        actions[22] = handler.inform.selector;
        (actions[23], actions[24]) = (handler.takeUnrevealed.selector, handler.lapse.selector);
        // Four chances in twenty-nine.
        actions[25] = actions[26] = actions[27] = actions[28] = handler.advance.selector;
        targetContract(address(handler));
        targetSelector(FuzzSelector(address(handler), actions));
    }

    /// @dev Before it is over a task's escrow holds the price (at most the budget), the fees of all seats and of the draws that it
    /// has not paid; and the best bidder's lock the penalty, then the stake.
    function invariant_escrowCoversEveryClaim() public view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            if (handler.ended(task) != ITaskMarket.Status.None) continue;
            ITaskMarket.Task memory entry = market.taskOf(task);
            Terms memory terms = market.termsOf(task);
            uint256 fees = uint256(terms.auditFee) * terms.verifiers * terms.segmentsPerVerifier;
            uint256 paid = board.auditOf(task).escrowDraws - (entry.owesDraw ? 1 : 0);
            if (terms.lookChance != 0) fees = 2 * fees - _attestedLooks(task) * terms.auditFee;
            uint256 drawFees = ((terms.lookChance == 0 ? 8 : 12) - paid) * market.parameters().drawFee;
            assertEq(_remaining(entry.escrow), terms.budget + fees + drawFees);
            assertLe(entry.price, terms.budget);
            if (entry.bidder == address(0)) continue;
            bool submitted = entry.status >= ITaskMarket.Status.Submitted;
            assertEq(_remaining(entry.stake), submitted ? terms.stake : terms.delayPenalty);
        }
    }

    /// @dev Nobody has two seats, and who has one, or is suspended, cannot be drawn.
    function invariant_oneSeatAtATime() public view {
        for (uint256 i; i < handler.peopleCount(); ++i) {
            address account = handler.people(i);
            uint256 seats = _seatsOf(account);
            assertLe(seats, 1);
            Registration memory entry = board.registrationOf(account);
            if (entry.account == address(0)) {
                assertEq(seats, 0);
                continue;
            }
            bool bound = entry.freeSince == type(uint40).max;
            assertEq(bound, seats == 1 || entry.suspended);
            uint256 stake = market.parameters().stakeUnit << entry.level;
            if (entry.suspended) assertLt(_remaining(entry.lock), stake);
            else assertEq(_remaining(entry.lock), stake);
        }
    }

    /// @dev The board counts and keeps the attestations of the seats that are attested, and of no other.
    function invariant_attestationsAreThoseOfTheSeats() public view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            Seat[] memory seats = board.seatsOf(task);
            uint256 attested;
            for (uint256 i; i < seats.length; ++i) {
                if (seats[i].attested) ++attested;
                assertEq(seats[i].attested, board.attestationOf(task, i) != 0);
            }
            assertEq(board.auditOf(task).attested, attested);
            uint256[] memory numbers;
            (numbers, seats) = board.looksOf(task);
            for (uint256 i; i < seats.length; ++i) {
                assertEq(seats[i].attested, board.attestationOf(task, numbers[i]) != 0);
            }
        }
    }

    /// @dev Looks begin when every seat is attested, and from then on it stays so; there are as many as segments at most, four levels,
    /// and none where the terms have none. What is audited awaits nothing, and only that is settled.
    function invariant_looksFollowTheSeats() public view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            Terms memory terms = market.termsOf(task);
            Audit memory audit = board.auditOf(task);
            uint256 most = terms.lookChance == 0 ? 0 : terms.verifiers * terms.segmentsPerVerifier;
            assertLe(audit.looks, most);
            assertLe(audit.level, 4);
            assertLe(audit.lookDraws, 3);
            assertEq(audit.looks == 0, audit.pickedAt == 0);
            if (audit.pickedAt != 0 || audit.audited) assertEq(audit.attested, terms.verifiers);
            if (audit.audited) assertTrue(audit.looking == 0 && !audit.pending);
            if (handler.ended(task) == ITaskMarket.Status.Settled) assertTrue(audit.audited);
            (uint256[] memory numbers, Seat[] memory looks) = board.looksOf(task);
            assertLe(numbers.length, audit.looks);
            for (uint256 i; i < looks.length; ++i) {
                uint256 slot = numbers[i] % 32;
                bool awaited = numbers[i] / 32 == audit.level && audit.looking >> slot & 1 == 1;
                // Those that wait when the task ends stay as they are.
                assertEq(looks[i].attested, !awaited);
            }
        }
    }

    /// @dev A task's window does not end while a draw of it is asked for, nor before its attestations are due.
    function invariant_windowOutlastsAttestations() public view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            ITaskMarket.Task memory entry = market.taskOf(task);
            if (entry.status != ITaskMarket.Status.Submitted) continue;
            Audit memory audit = board.auditOf(task);
            if (audit.pending) assertEq(entry.challengeUntil, type(uint64).max);
            else assertGt(entry.challengeUntil, audit.until);
        }
    }

    /// @dev Bidding ends: its overtime is below (n + 1) extensions, where n bids, each as high and as late as it may be, bring the
    /// budget down to 0.
    function invariant_biddingEnds() public view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            Terms memory terms = market.termsOf(task);
            ITaskMarket.Task memory entry = market.taskOf(task);
            assertLt(entry.overtime, (_lateBids(terms.budget) + 1) * terms.extension);
            if (entry.trainUntil != 0) assertEq(entry.trainUntil, entry.bidsUntil + terms.trainingPeriod);
        }
    }

    function invariant_noLockPaysMoreThanItHolds() public view {
        uint256 locks = vault.locks();
        for (uint256 lock = 1; lock <= locks; ++lock) {
            assertEq(handler.takenOut(lock) + _remaining(lock), handler.lockedIn(lock));
        }
    }

    function invariant_aFinishedTaskStaysFinished() public view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            ITaskMarket.Status ended = handler.ended(task);
            if (ended == ITaskMarket.Status.None) continue;
            ITaskMarket.Task memory entry = market.taskOf(task);
            assertEq(uint8(entry.status), uint8(ended));
            assertEq(_remaining(entry.escrow), entry.owesDraw ? market.parameters().drawFee : 0);
            if (entry.stake == 0) continue;
            assertEq(_remaining(entry.stake), _restOf(task, ended));
        }
    }

    /// @dev What came in is what went out, what the people of the terms own or have locked, and what was burned: so nobody
    /// else received anything.
    function invariant_inflowEqualsPayoutsRefundsAndBurns() public view {
        uint256 held = vault.burned();
        for (uint256 i; i < handler.peopleCount(); ++i) {
            held += vault.free(handler.people(i));
        }
        uint256 locks = vault.locks();
        for (uint256 lock = 1; lock <= locks; ++lock) {
            held += _remaining(lock);
        }
        assertEq(handler.deposited(), held + handler.withdrawn());
        assertEq(IERC20(vault.token()).balanceOf(address(vault)), held);
    }

    /// @dev Only a conviction, a missed deadline, a silent seat or look, an informer or a digest that was not opened burns.
    function invariant_onlySlashesDelaysSilencesAndInformersBurn() public view {
        uint256 causes = handler.endings(ITaskMarket.Status.Slashed)
            + handler.endings(ITaskMarket.Status.Refunded) + handler.suspensions();
        if (causes == 0) assertEq(vault.burned(), 0);
    }

    /// @dev The handler is worth something: at random it brings tasks to every end there is.
    function test_handler_reachesEveryEnd_succeeds() public {
        // All of it costs more than a test has.
        vm.pauseGasMetering();
        uint256[4] memory reached;
        uint256[4] memory voids;
        uint256[5] memory looked;
        uint256 informings;
        for (uint256 run; run < 90; ++run) {
            uint256 start = vm.snapshotState();
            for (uint256 i; i < 70; ++i) {
                _act(uint256(keccak256(abi.encode(run, i))));
            }
            for (uint8 s = 4; s <= 7; ++s) {
                reached[s - 4] += handler.endings(ITaskMarket.Status(s));
            }
            for (uint256 k = 1; k <= market.tasks(); ++k) {
                TaskId task = TaskId.wrap(k);
                Audit memory audit = board.auditOf(task);
                if (audit.informedAt != 0) ++informings;
                if (audit.looks != 0 && audit.audited) ++looked[0];
                if (audit.looks != 0 && audit.level > 1) ++looked[1];
                if (audit.lookDraws > 1) ++looked[2];
                if (handler.stalled(task) && market.taskOf(task).status == ITaskMarket.Status.Slashed) {
                    ++voids[0];
                }
                if (handler.ended(task) != ITaskMarket.Status.Void) continue;
                if (!handler.stalled(task)) ++voids[1];
                else if (audit.drawnAt == 0) ++voids[2];
                else ++voids[3];
            }
            looked[3] += handler.unrevealed();
            looked[4] += handler.lapses();
            vm.revertToState(start);
        }
        for (uint256 i; i < 5; ++i) {
            emit log_named_uint("looked", looked[i]);
            assertGt(looked[i], 0);
        }
        emit log_named_uint("informings", informings);
        assertGt(informings, 0);
        for (uint256 i; i < 4; ++i) {
            emit log_named_uint("reached", reached[i]);
            emit log_named_uint("voids", voids[i]);
            assertGt(reached[i], 0);
            assertGt(voids[i], 0);
        }
    }

    function _act(uint256 seed) private {
        uint256 choice = seed % ACTIONS;
        seed >>= 8;
        if (choice == 0) handler.post(uint128(seed), uint128(seed >> 8), uint128(seed >> 16), uint16(seed));
        else if (choice == 1) handler.bid(seed, uint128(seed), seed & 1 == 0);
        else if (choice == 2) handler.assign(seed);
        else if (choice == 3) handler.progress(seed, uint32(seed));
        else if (choice == 4) handler.submit(seed);
        else if (choice == 5) handler.expire(seed);
        else if (choice == 6) handler.draw();
        else if (choice == 7) handler.exhaust(seed);
        else if (choice == 8) handler.attest(seed, seed & 4 == 0);
        else if (choice == 9) handler.finish(seed);
        else if (choice == 10) handler.openGame(seed);
        else if (choice == 11) handler.closeGame(seed);
        else if (choice == 12) handler.convict(seed);
        else if (choice == 13) handler.withdraw(seed, seed >> 8);
        else if (choice == 14) handler.turnOver(seed);
        else if (choice == 15) handler.bidLate(seed);
        else if (choice == 16) handler.stall(seed);
        else if (choice == 17) handler.closeStalled(seed);
        else if (choice == 18) handler.release();
        else if (choice == 19) handler.resume(seed);
        else if (choice == 20) handler.claim(seed, seed & 8 == 0, seed & 16 == 0);
        else if (choice == 21) handler.burnRest(seed);
        else if (choice == 22) handler.inform(seed);
        else if (choice == 23) handler.takeUnrevealed(seed);
        else if (choice == 24) handler.lapse(seed);
        else handler.advance(seed);
    }

    /// @dev What is left of the stake: of a convicted task what was not paid out, until it burns; at least a quarter burns.
    function _restOf(TaskId task, ITaskMarket.Status ended) private view returns (uint256 rest) {
        if (ended != ITaskMarket.Status.Slashed) return 0;
        Terms memory terms = market.termsOf(task);
        rest = terms.stake - terms.restitution - handler.claimed(task);
        rest -= handler.stalled(task) ? terms.retrainReward : terms.reward;
        assertGe(rest, (uint256(terms.stake) + 3) / 4);
        if (handler.rests(task)) rest = 0;
    }

    function _lateBids(uint128 best) private pure returns (uint256 bids) {
        for (bids = 1; best != 0; ++bids) {
            best -= uint128(Bids.undercut(best, bids, 1));
        }
    }

    function _attestedLooks(TaskId task) private view returns (uint256 count) {
        (, Seat[] memory looks) = board.looksOf(task);
        for (uint256 i; i < looks.length; ++i) {
            if (looks[i].attested) ++count;
        }
    }

    /// @dev The account's seats and looks that bind it: neither released nor caught.
    function _seatsOf(address account) private view returns (uint256 count) {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            count += _binding(board.seatsOf(TaskId.wrap(k)), account);
            (, Seat[] memory looks) = board.looksOf(TaskId.wrap(k));
            count += _binding(looks, account);
        }
    }

    function _binding(Seat[] memory seats, address account) private pure returns (uint256 count) {
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].account == account && !seats[i].released && !seats[i].caught) ++count;
        }
    }

    function _remaining(uint256 lock) private view returns (uint256 remaining) {
        (,, remaining) = vault.lockOf(lock);
    }
}
