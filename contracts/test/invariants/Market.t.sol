// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Bids} from "../../src/libraries/Bids.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit, Registration, Seat} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Ending} from "./Ending.sol";
import {LooksInvariants} from "./Looks.t.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title Invariants (dispute.md section 8) as far as vault, market, audit board, looks and juries can break
/// them.
contract MarketInvariants is LooksInvariants {
    uint256 private constant ACTIONS = 55;

    function setUp() public {
        _watch(new Ending());
        bytes4[] memory actions = new bytes4[](ACTIONS);
        for (uint256 i; i < ACTIONS; ++i) {
            actions[i] = _selector(i);
        }
        targetContract(address(handler));
        targetSelector(FuzzSelector(address(handler), actions));
    }

    /// @notice One campaign checks every invariant: separate campaigns would each see the same calls again.
    /// forge-config: default.invariant.check-interval = 8
    function invariant_everySentenceHolds() public view {
        invariant_escrowCoversEveryClaim();
        invariant_oneSeatAtATime();
        invariant_attestationsAreThoseOfTheSeats();
        invariant_looksFollowTheSeats();
        invariant_windowOutlastsAttestations();
        invariant_biddingEnds();
        invariant_noLockPaysMoreThanItHolds();
        invariant_aFinishedTaskStaysFinished();
        invariant_inflowEqualsPayoutsRefundsAndBurns();
        invariant_onlySlashesDelaysSilencesAndInformersBurn();
        invariant_countsAreOfWhatIsOpen();
        invariant_jurorsVotesAreTheirs();
        invariant_honestVerifiersLoseNothing();
    }

    /// @notice Wherever a run stops, every task can be brought to an end, after which only stakes of
    /// registrations are locked.
    function afterInvariant() public {
        handler.endAll();
        invariant_everySentenceHolds();
        invariant_everyTaskEndsAndFreesItsLocks();
    }

    /// @dev Until a task is over, its escrow holds the budget, which covers the price, and the fees of all
    /// seats, of looks that have not attested and of draws that it has not paid for. The best bidder's lock
    /// holds the penalty, then the stake less what a jury took.
    function invariant_escrowCoversEveryClaim() internal view {
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
            uint256 stake = terms.stake - handler.taken(task);
            assertEq(_remaining(entry.stake), submitted ? stake : terms.delayPenalty);
        }
    }

    /// @dev Nobody has two seats, and an account that has a seat or is suspended cannot be drawn.
    function invariant_oneSeatAtATime() internal view {
        (address[] memory accounts, uint256[] memory bindings) = _bindings();
        uint256 unit = market.parameters().stakeUnit;
        for (uint256 i; i < accounts.length; ++i) {
            (address account, uint256 seats) = (accounts[i], bindings[i]);
            assertLe(seats, 1);
            Registration memory entry = board.registrationOf(account);
            if (entry.account == address(0)) {
                assertEq(seats, 0);
                continue;
            }
            bool bound = entry.freeSince == type(uint40).max;
            assertEq(bound, seats == 1 || entry.suspended);
            uint256 stake = unit << entry.level;
            if (entry.suspended) assertLt(_remaining(entry.lock), stake);
            else assertEq(_remaining(entry.lock), stake);
        }
    }

    /// @dev The board counts and stores the attestations of exactly the attested seats.
    function invariant_attestationsAreThoseOfTheSeats() internal view {
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

    /// @dev Looks begin when every seat is attested, and seats stay attested from then on. There are at most
    /// as many looks as segments, on four levels, and none if the terms have none. An audited task awaits
    /// nothing, and only audited tasks are settled.
    function invariant_looksFollowTheSeats() internal view {
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
            (uint256[] memory numbers, Seat[] memory looks_) = board.looksOf(task);
            assertLe(numbers.length, audit.looks);
            for (uint256 i; i < looks_.length; ++i) {
                uint256 slot = numbers[i] % 32;
                bool awaited = numbers[i] / 32 == audit.level && audit.looking >> slot & 1 == 1;
                // Looks that are awaited when the task ends, or when the draw of a jury lapses, stay
                // unchanged.
                assertTrue(looks_[i].attested != awaited || handler.done("lapse of a jury") != 0);
            }
        }
    }

    /// @dev A task's window does not end while a draw of it is pending, nor before its attestations are due.
    function invariant_windowOutlastsAttestations() internal view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            ITaskMarket.Task memory entry = market.taskOf(task);
            if (entry.status != ITaskMarket.Status.Submitted) continue;
            Audit memory audit = board.auditOf(task);
            if (audit.pending) assertEq(entry.challengeUntil, type(uint64).max);
            else assertGt(entry.challengeUntil, audit.until);
        }
    }

    /// @dev Bidding ends: its overtime is below (n + 1) extensions, where n bids, each as high and as late as
    /// allowed, bring the budget down to 0.
    function invariant_biddingEnds() internal view {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            Terms memory terms = market.termsOf(task);
            ITaskMarket.Task memory entry = market.taskOf(task);
            assertLt(entry.overtime, (_lateBids(terms.budget) + 1) * terms.extension);
            if (entry.trainUntil != 0) assertEq(entry.trainUntil, entry.bidsUntil + terms.trainingPeriod);
        }
    }

    function invariant_noLockPaysMoreThanItHolds() internal view {
        uint256 locks = vault.locks();
        for (uint256 lock = 1; lock <= locks; ++lock) {
            assertEq(handler.takenOut(lock) + _remaining(lock), handler.lockedIn(lock));
        }
    }

    function invariant_aFinishedTaskStaysFinished() internal view {
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

    /// @dev Deposits equal withdrawals plus the balances and locks of the known accounts plus burned tokens,
    /// so nobody else received anything.
    function invariant_inflowEqualsPayoutsRefundsAndBurns() internal view {
        uint256 held = vault.burned();
        address[] memory accounts = handler.everybody();
        for (uint256 i; i < accounts.length; ++i) {
            held += vault.free(accounts[i]);
        }
        uint256 locks = vault.locks();
        for (uint256 lock = 1; lock <= locks; ++lock) {
            held += _remaining(lock);
        }
        assertEq(handler.deposited(), held + handler.withdrawn());
        assertEq(IERC20(vault.token()).balanceOf(address(vault)), held);
    }

    /// @dev Tokens burn only after a conviction, a missed deadline, a silent seat or look, an informer, a
    /// digest that was not opened or not answered for, or a verdict.
    function invariant_onlySlashesDelaysSilencesAndInformersBurn() internal view {
        uint256 causes = handler.endings(ITaskMarket.Status.Slashed)
            + handler.endings(ITaskMarket.Status.Refunded) + handler.causes();
        if (causes == 0) assertEq(vault.burned(), 0);
    }

    /// @dev The handler is effective: random runs bring tasks to every possible end.
    function test_handler_reachesEveryEnd_succeeds() public {
        // The total gas is more than a test has.
        vm.pauseGasMetering();
        uint256[4] memory reached;
        uint256[4] memory voids;
        uint256[3] memory looked;
        bytes32[] memory names = _names();
        uint256[] memory done = new uint256[](names.length);
        for (uint256 run; run < 140; ++run) {
            uint256 start = vm.snapshotState();
            for (uint256 i; i < 80; ++i) {
                _act(uint256(keccak256(abi.encode(run, i))), run >= 120);
            }
            for (uint8 s = 4; s <= 7; ++s) {
                reached[s - 4] += handler.endings(ITaskMarket.Status(s));
            }
            for (uint256 k = 1; k <= market.tasks(); ++k) {
                TaskId task = TaskId.wrap(k);
                Audit memory audit = board.auditOf(task);
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
            for (uint256 i; i < names.length; ++i) {
                done[i] += handler.done(names[i]);
            }
            vm.revertToState(start);
        }
        for (uint256 i; i < names.length; ++i) {
            emit log_named_uint(string(abi.encodePacked(names[i])), done[i]);
        }
        for (uint256 i; i < names.length; ++i) {
            assertGt(done[i], 0, string(abi.encodePacked(names[i])));
        }
        for (uint256 i; i < 3; ++i) {
            emit log_named_uint("looked", looked[i]);
            assertGt(looked[i], 0);
        }
        for (uint256 i; i < 4; ++i) {
            emit log_named_uint("reached", reached[i]);
            emit log_named_uint("voids", voids[i]);
            assertGt(reached[i], 0);
            assertGt(voids[i], 0);
        }
    }

    /// @dev An action with arguments from the seed. Every action takes words, a few of them narrower or a
    /// single bit.
    /// @param stopped The beacon has stopped: tasks are posted and end, and no draw is executed.
    function _act(uint256 seed, bool stopped) private {
        uint8[6] memory few = [0, 1, 2, 4, 16, 17];
        bytes4 selector = _selector(stopped ? few[seed % 6] : seed % ACTIONS);
        seed >>= 8;
        if (selector == handler.post.selector) {
            return handler.post(uint128(seed), uint128(seed >> 8), uint128(seed >> 16), uint16(seed));
        }
        if (selector == handler.bid.selector) return handler.bid(seed, uint128(seed), seed & 1 == 0);
        if (selector == handler.progress.selector) return handler.progress(seed, uint32(seed));
        if (selector == handler.attest.selector) return handler.attest(seed, seed & 4 == 0);
        if (selector == handler.withdraw.selector) return handler.withdraw(seed, seed >> 8);
        if (selector == handler.claim.selector) return handler.claim(seed, seed & 8 == 0, seed & 16 == 0);
        // A function without arguments ignores it.
        (bool success,) = address(handler).call(abi.encodeWithSelector(selector, seed));
        assertTrue(success);
    }

    function _selector(uint256 i) private view returns (bytes4) {
        if (i == 0) return handler.post.selector;
        if (i == 1) return handler.bid.selector;
        if (i == 2) return handler.assign.selector;
        if (i == 3) return handler.progress.selector;
        if (i == 4) return handler.submit.selector;
        if (i == 5) return handler.expire.selector;
        if (i == 6) return handler.draw.selector;
        if (i == 7) return handler.exhaust.selector;
        if (i == 8) return handler.attest.selector;
        if (i == 9) return handler.finish.selector;
        if (i == 10) return handler.openGame.selector;
        if (i == 11) return handler.closeGame.selector;
        if (i == 12) return handler.convict.selector;
        if (i == 13) return handler.withdraw.selector;
        if (i == 14) return handler.turnOver.selector;
        if (i == 15) return handler.bidLate.selector;
        if (i == 16) return handler.stall.selector;
        if (i == 17) return handler.closeStalled.selector;
        if (i == 18) return handler.release.selector;
        if (i == 19) return handler.resume.selector;
        if (i == 20) return handler.claim.selector;
        if (i == 21) return handler.burnRest.selector;
        if (i == 22) return handler.inform.selector;
        if (i == 23) return handler.takeUnrevealed.selector;
        if (i == 24) return handler.lapse.selector;
        if (i == 25) return handler.reveal.selector;
        if (i == 26) return handler.accuse.selector;
        if (i == 27) return handler.answer.selector;
        if (i == 28) return handler.contest.selector;
        if (i == 29) return handler.takeUnanswered.selector;
        if (i == 30) return handler.closeMoot.selector;
        if (i == 31) return handler.dropGame.selector;
        if (i == 32) return handler.claimItem.selector;
        if (i == 33) return handler.vote.selector;
        if (i == 34) return handler.object.selector;
        if (i == 35) return handler.open.selector;
        if (i == 36) return handler.close.selector;
        if (i == 37) return handler.dropClaim.selector;
        if (i == 38) return handler.cancel.selector;
        // Sixteen chances in fifty-five.
        return handler.advance.selector;
    }

    /// @dev The events of looks, juries and cancelled tasks that a handler counts; each must occur.
    function _names() private pure returns (bytes32[] memory names) {
        names = new bytes32[](22);
        (names[0], names[1], names[2]) = ("inform", "reveal", "takeUnrevealed");
        (names[3], names[4], names[5]) = ("lapse", "lapse of a jury", "accuse");
        (names[6], names[7], names[8]) = ("answer", "contest", "takeUnanswered");
        (names[9], names[10], names[11]) = ("closeMoot", "dropGame", "claim of a seat");
        (names[12], names[13], names[14]) = ("claim of a look", "yes", "no");
        (names[15], names[16], names[17]) = ("object", "open", "drop of a claim");
        (names[18], names[19]) = ("verdict that goes on", "verdict that it is withheld");
        (names[20], names[21]) = ("cancel", "drop, unpaid");
    }

    /// @dev What is left of the stake of a task that is over: 0 unless it was convicted; then what was not
    /// paid out, until it burns. With what a jury took, that is at least a quarter of the stake.
    function _restOf(TaskId task, ITaskMarket.Status ended) private view returns (uint256 rest) {
        if (ended != ITaskMarket.Status.Slashed) return 0;
        Terms memory terms = market.termsOf(task);
        rest = terms.stake - terms.restitution - handler.claimed(task) - handler.taken(task);
        rest -= handler.stalled(task) ? terms.retrainReward : terms.reward;
        assertGe(rest + handler.taken(task), (uint256(terms.stake) + 3) / 4);
        if (handler.rests(task)) rest = 0;
    }

    function _lateBids(uint128 best) private pure returns (uint256 bids) {
        for (bids = 1; best != 0; ++bids) {
            best -= uint128(Bids.undercut(best, bids, 1));
        }
    }

    function _attestedLooks(TaskId task) private view returns (uint256 count) {
        (, Seat[] memory found) = board.looksOf(task);
        for (uint256 i; i < found.length; ++i) {
            if (found[i].attested) ++count;
        }
    }

    /// @dev The number of seats, looks and jury seats that bind each account: neither released nor caught.
    function _bindings() private view returns (address[] memory accounts, uint256[] memory bindings) {
        accounts = handler.everybody();
        bindings = new uint256[](accounts.length);
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            _count(board.seatsOf(TaskId.wrap(k)), accounts, bindings);
            (, Seat[] memory found) = board.looksOf(TaskId.wrap(k));
            _count(found, accounts, bindings);
            _count(_jurors(TaskId.wrap(k)), accounts, bindings);
        }
    }

    function _count(Seat[] memory seats, address[] memory accounts, uint256[] memory bindings) private pure {
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].account == address(0) || seats[i].released || seats[i].caught) continue;
            uint256 who;
            // Goes out of bounds if an unknown account is seated.
            while (accounts[who] != seats[i].account) ++who;
            ++bindings[who];
        }
    }
}
