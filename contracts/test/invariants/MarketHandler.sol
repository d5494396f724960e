// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommitments} from "../../src/interfaces/ICommitments.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Bids} from "../../src/libraries/Bids.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit, Registration, Seat} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {HonestHandler} from "./HonestHandler.sol";

/// @title Drives up to four tasks through all possible events, in any order.
/// @notice An action that is not possible does nothing; none reverts. Time and block number are the handler's
/// own.
contract MarketHandler is HonestHandler {
    uint256 private constant MOST_TASKS = 4;
    uint8 private constant JURORS = 3;
    uint64 private constant CLAIM_PERIOD = 60 + STALL_PERIOD;

    mapping(TaskId task => mapping(uint256 seat => bool[2])) private _claimed;

    /// @notice One task is drawn and one has looks, so that short runs reach what comes after that.
    function setUp() public override {
        super.setUp();
        _begin(69);
        _begin(48);
        attest(1, true);
        draw();
    }

    /// @dev Brings a task to its draw, with two seats or one and three segments each; both tasks have juries
    /// and a look chance of nine in ten.
    function _begin(uint16 shape) private {
        post(BUDGET, 0, 2 * UNIT, shape);
        uint256 seed = market.tasks() - 1;
        bid(seed, BUDGET, false);
        assign(seed);
        submit(seed);
        draw();
    }

    // ------------------------------------------------------------------ actions

    /// @notice Takes a random task a step further; without it few tasks would reach settlement.
    function advance(uint256 seed) external {
        vm.roll(_block);
        uint256 count = market.tasks();
        if (count == 0) return post(uint128(seed), 0, 0, uint16(seed));
        TaskId task = TaskId.wrap(seed % count + 1);
        ITaskMarket.Task memory entry = market.taskOf(task);
        if (entry.status == ITaskMarket.Status.Bidding) {
            if (entry.bidder == address(0)) bid(seed, BUDGET, false);
            else assign(seed);
        } else if (entry.status == ITaskMarket.Status.Training) {
            submit(seed);
        } else if (entry.status == ITaskMarket.Status.Submitted) {
            if (entry.openGames != 0) closeGame(seed);
            else _advanceAudit(seed, task, board.auditOf(task));
        }
    }

    function post(uint128 budget, uint128 restitution, uint128 fee, uint16 shape) public action {
        if (market.tasks() == MOST_TASKS || board.registered() == 0) return;
        Terms memory terms = _smallTerms();
        terms.budget = uint128(bound(budget, 1, BUDGET));
        terms.restitution = uint128(bound(restitution, 0, terms.budget));
        // All offers accept these fees; they refuse a fee of 0.
        terms.auditFee = uint128(bound(fee, UNIT / 2, 9 * UNIT));
        terms.verifiers = 1 + shape % 4;
        terms.segmentsPerVerifier = 1 + (shape / 4) % 5;
        terms.seatLock = 60 * UNIT;
        if (shape % 5 == 0) terms.auditFee = 0;
        if (shape % 7 != 0) terms.lookChance = 1_500 * (shape % 7);
        bool juries_ = shape % 11 > 2 && board.registered() >= terms.verifiers + JURORS;
        if (juries_) terms.jurors = JURORS;
        _post(terms);
    }

    function bid(uint256 seed, uint128 price, bool byRival) public action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Bidding);
        if (TaskId.unwrap(task) == 0 || _time > entry.bidsUntil) return;
        (bool any, uint256 most) = _mostBid(task, entry);
        if (!any) return;
        vm.prank(byRival ? rival : solver);
        market.bid(task, uint128(bound(price, most / 2, most)));
    }

    /// @notice Bids as high and as late as allowed, several times: nobody can make bidding last longer.
    function bidLate(uint256 seed) external action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Bidding);
        if (TaskId.unwrap(task) == 0 || _time > entry.bidsUntil) return;
        for (uint256 i; i < 1 + (seed >> 8) % 16; ++i) {
            (bool any, uint256 most) = _mostBid(task, entry);
            if (!any) return;
            _reach(entry.bidsUntil);
            vm.prank(i % 2 == 0 ? rival : solver);
            market.bid(task, uint128(most));
            entry = market.taskOf(task);
        }
    }

    function assign(uint256 seed) public action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Bidding);
        if (TaskId.unwrap(task) == 0) return;
        _reach(entry.bidsUntil + 1);
        market.assign(task);
    }

    /// @notice The submitter cancels a task on which nobody has bid; rarely, since otherwise few tasks would
    /// get any further.
    function cancel(uint256 seed) external action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Bidding);
        if (TaskId.unwrap(task) == 0 || entry.bidder != address(0) || seed % 4 != 0) return;
        vm.prank(entry.submitter);
        market.cancel(task);
        ++done["cancel"];
    }

    function progress(uint256 seed, uint32 size) external action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Training);
        if (TaskId.unwrap(task) == 0 || _time > entry.trainUntil || entry.size == SEGMENTS) return;
        solver = entry.bidder;
        _progress(task, uint32(bound(size, entry.size + 1, SEGMENTS)));
    }

    function submit(uint256 seed) public action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Training);
        if (TaskId.unwrap(task) == 0 || _time > entry.trainUntil) return;
        solver = entry.bidder;
        _submit(task);
    }

    function expire(uint256 seed) external {
        if (seed % 4 == 0) expireOne(seed / 4);
    }

    function expireOne(uint256 seed) public action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Training);
        if (TaskId.unwrap(task) == 0) return;
        _reach(entry.trainUntil + 1);
        market.expire(task);
    }

    /// @notice Executes the first draw of the queue, whatever happened to its task.
    function draw() public action {
        uint40 task = board.firstDraw().task;
        if (task != 0) _draw(TaskId.wrap(task));
    }

    /// @notice Settles a task, requests a redraw of its seats, or voids it.
    function finish(uint256 seed) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        Audit memory audit = board.auditOf(task);
        if (TaskId.unwrap(task) == 0 || audit.pending || audit.claimant != 0) return;
        _reach(audit.until + 1);
        audit = board.auditOf(task);
        // Honest accounts may have attested in the meantime, which requests the next level of looks.
        if (audit.pending) return;
        (bool silent, bool empty) = _missing(task);
        if (silent || (empty && (audit.escrowDraws < 8 || audit.purse != 0))) {
            board.redraw(task);
        } else if (market.taskOf(task).openGames == 0) {
            _reach(_windowUntil(task) + 1);
            if (empty) market.voidTask(task);
            else if (looks.openAccusations(task) == 0) market.settle(task);
        }
    }

    /// @notice Redraws a task's empty seats until its escrow pays no more.
    function exhaust(uint256 seed) external {
        if (seed % 2 == 0) return;
        for (uint256 i; i < 24; ++i) {
            if (i % 3 == 0) finish(seed);
            else if (i % 3 == 1) draw();
            else attest(seed, true);
        }
    }

    /// @notice A task stalls, because nobody asks for another draw or the beacon stops.
    function stall(uint256 seed) external action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || seed % 3 != 0) return;
        Audit memory audit = board.auditOf(task);
        if (audit.attested == market.termsOf(task).verifiers) return;
        if (audit.claimant != 0 && !audit.pending) return;
        bool waits = audit.drawnAt == 0 || audit.claimant != 0;
        uint256 since = waits ? beacon.timeOf(audit.round) : audit.drawnAt;
        if (since < audit.informedAt) since = audit.informedAt;
        _reach(uint64(since) + STALL_PERIOD + 1);
        // Honest accounts may have attested.
        if (board.auditOf(task).attested != market.termsOf(task).verifiers) market.stall(task);
    }

    function closeStalled(uint256 seed) public action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Unpaid);
        if (TaskId.unwrap(task) == 0 || entry.openGames != 0) return;
        _reach(_windowUntil(task) + 1);
        market.closeStalled(task);
    }

    /// @notice Frees accounts with seats in tasks that are over.
    function release() public action {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            if (market.taskOf(task).status == ITaskMarket.Status.Submitted) continue;
            if (board.auditOf(task).purse != 0) board.burnPurse(task);
            Seat[] memory seats = board.seatsOf(task);
            for (uint256 i; i < seats.length; ++i) {
                if (seats[i].account != address(0)) _release(task, i, seats[i]);
            }
            uint256[] memory numbers;
            (numbers, seats) = board.looksOf(task);
            for (uint256 i; i < seats.length; ++i) {
                _release(task, numbers[i], seats[i]);
            }
            for (uint256 i; i < market.termsOf(task).jurors; ++i) {
                Seat memory juror = board.seatOf(task, FIRST_JUROR + i);
                if (juror.account != address(0)) _release(task, FIRST_JUROR + i, juror);
            }
        }
    }

    function _release(TaskId task, uint256 number, Seat memory seat) private {
        if (!seat.released && !seat.caught) board.release(task, number);
    }

    function resume(uint256 who) public action {
        address account = verifiers[who % verifiers.length];
        if (!board.registrationOf(account).suspended) return;
        vm.prank(account);
        board.resume();
    }

    function openGame(uint256 seed) external action {
        TaskId task = _challengeable(seed);
        if (TaskId.unwrap(task) == 0) return;
        vm.prank(game);
        market.gameOpened(task);
    }

    function closeGame(uint256 seed) public action {
        uint256 count = market.tasks();
        for (uint256 i; i < count; ++i) {
            TaskId task = TaskId.wrap((seed % count + i) % count + 1);
            if (market.taskOf(task).openGames == 0) continue;
            vm.prank(game);
            market.gameClosed(task);
            return;
        }
    }

    /// @notice Convicts a stalled task whenever it looks for one, because they are few; a submitted one less
    /// often.
    function convict(uint256 seed) external {
        if (seed % 2 != 0 || seed % 3 == 0) convictOne(seed);
    }

    function convictOne(uint256 seed) public action {
        TaskId task = _challengeable(seed);
        if (TaskId.unwrap(task) == 0) return;
        vm.startPrank(game);
        if (market.taskOf(task).openGames == 0) market.gameOpened(task);
        market.convict(task, challenger);
        vm.stopPrank();
        _mockClaims(task, uint64(_time) + CLAIM_PERIOD);
    }

    /// @notice A seat of a convicted task claims its cost, its fee, or both, once each.
    function claim(uint256 seed, bool cost, bool fee) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Slashed);
        uint256 seats = board.seatsOf(task).length;
        if (seats == 0 || rests[task]) return;
        uint256 seat = seed % seats;
        (cost, fee) = (cost && !_claimed[task][seat][0], fee && !_claimed[task][seat][1]);
        if (cost) _claimed[task][seat][0] = true;
        if (fee) _claimed[task][seat][1] = true;
        address account = board.seatOf(task, seat).account;
        uint256 segments = fee ? market.termsOf(task).segmentsPerVerifier : 0;
        vm.prank(commitments);
        claimed[task] += market.compensate(task, account == address(0) ? challenger : account, cost, segments);
    }

    /// @notice Burns the rest of a convicted stake, once the time for claims is over; for one seed in three.
    function burnRest(uint256 seed) external {
        if (seed % 3 == 0) burnRestOne(seed / 3);
    }

    function burnRestOne(uint256 seed) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Slashed);
        if (TaskId.unwrap(task) == 0) return;
        _reach(ICommitments(commitments).claimsUntil(task) + 1);
        market.burnRest(task);
        rests[task] = true;
    }

    function withdraw(uint256 who, uint256 amount) external action {
        address person = people[who % people.length];
        if (honest[person]) return;
        amount = bound(amount, 0, vault.free(person) / 100);
        vm.prank(person);
        vault.withdraw(amount);
        withdrawn += amount;
    }

    /// @notice Resigns; after the unbonding period leaves and registers again.
    function turnOver(uint256 who) external action {
        address account = verifiers[who % verifiers.length];
        Registration memory entry = board.registrationOf(account);
        if (entry.resignedAt == 0) {
            if (board.registered() <= 4) return;
            vm.prank(account);
            board.resign();
        } else if (entry.freeSince != type(uint40).max || entry.suspended) {
            _reach(uint64(entry.resignedAt) + UNBONDING_PERIOD + 1);
            vm.startPrank(account);
            board.quit();
            board.register(1, _offer());
            vm.stopPrank();
        }
    }

    // ------------------------------------------------------------------ inside

    function _advanceAudit(uint256 seed, TaskId task, Audit memory audit) private {
        uint256 choice = (seed >> 8) % 8;
        if (audit.level != 0 && choice == 1) lapse(seed);
        else if (audit.pending) draw();
        else if (audit.claimant != 0) _advanceJury(seed, choice);
        else if (choice == 2 || (choice == 0 && looks.openAccusations(task) != 0)) claimItem(seed);
        else if (looks.openAccusations(task) != 0 && choice > 4) _advanceAccusation(seed, choice);
        else if (audit.pickedAt != 0 && choice == 3) takeUnrevealed(seed);
        else if (audit.pickedAt != 0 && choice == 4) accuse(seed);
        else if (audit.pickedAt != 0 && choice == 5) accuse(seed);
        else if (_time <= audit.until) attest(seed, choice != 0 && audit.level == 0);
        else if (looks.openAccusations(task) != 0) takeUnanswered(seed);
        else finish(seed);
    }

    function _advanceAccusation(uint256 seed, uint256 choice) private {
        if (choice == 5) contest(seed);
        else if (choice == 6) answer(seed);
        else if (seed >> 16 & 1 == 0) takeUnanswered(seed);
        else convictOne(2 * (seed % market.tasks()));
    }

    function _advanceJury(uint256 seed, uint256 choice) private {
        if (choice < 3) vote(seed);
        else if (choice == 3) accuse(seed);
        else if (choice < 6) object(seed);
        else close(seed);
    }

    /// @dev The highest bid that the task accepts now, if any.
    function _mostBid(TaskId task, ITaskMarket.Task memory entry)
        private
        view
        returns (bool any, uint256 most)
    {
        Terms memory terms = market.termsOf(task);
        if (entry.bidder == address(0)) return (true, terms.budget);
        uint256 undercut = Bids.undercut(entry.price, entry.overtime, terms.extension);
        return undercut > entry.price ? (false, 0) : (true, entry.price - undercut);
    }

    /// @dev The last second in which the task can be challenged.
    function _windowUntil(TaskId task) private view returns (uint64) {
        (uint64 until, uint64 answers) = (market.taskOf(task).challengeUntil, looks.answersUntil(task));
        return answers > until ? answers : until;
    }

    /// @dev A submitted or stalled task within its window; 0 if there is none.
    function _challengeable(uint256 seed) private view returns (TaskId task) {
        ITaskMarket.Status status = seed % 2 == 0 ? ITaskMarket.Status.Submitted : ITaskMarket.Status.Unpaid;
        (task,) = _find(seed >> 1, status);
        if (TaskId.unwrap(task) != 0 && _time > _windowUntil(task)) return TaskId.wrap(0);
    }
}
