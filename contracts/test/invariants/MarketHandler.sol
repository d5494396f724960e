// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {ICommitments} from "../../src/interfaces/ICommitments.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {IStakeVault} from "../../src/interfaces/IStakeVault.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Bids} from "../../src/libraries/Bids.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit, Registration, Seat} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IVault} from "../harness/Production.sol";
import {Deployment} from "../market/Deployment.sol";
import {Vm} from "forge-std/Vm.sol";

/// @title Drives up to six tasks through anything that may happen to them, in any order.
/// @notice An action that nothing is ready for does nothing; none reverts. Time and blocks are the handler's own.
contract MarketHandler is Deployment {
    uint256 private constant MOST_TASKS = 6;
    uint64 private constant CLAIM_PERIOD = 60 + STALL_PERIOD;

    address[] public people;
    /// @dev Sums over the vault's events of each lock: put in, taken out.
    mapping(uint256 lock => uint256) public lockedIn;
    mapping(uint256 lock => uint256) public takenOut;
    /// @dev The first final status that was seen of a task.
    mapping(TaskId task => ITaskMarket.Status) public ended;
    mapping(ITaskMarket.Status => uint256) public endings;
    mapping(TaskId task => bool) public stalled;
    /// @dev What seats have got of a convicted stake, and whether the rest was burned.
    mapping(TaskId task => uint256) public claimed;
    mapping(TaskId task => bool) public rests;
    mapping(TaskId task => mapping(uint256 seat => bool[2])) private _claimed;
    uint256 public suspensions;
    uint256 public deposited;
    uint256 public withdrawn;
    uint256 private _time;
    uint256 private _block;

    modifier action() {
        vm.warp(_time);
        vm.roll(_block);
        vm.recordLogs();
        _;
        _book();
        (_time, _block) = (vm.getBlockTimestamp() + 1, vm.getBlockNumber() + 1);
    }

    function setUp() public override {
        vm.recordLogs();
        super.setUp();
        _book();
        (_time, _block) = (vm.getBlockTimestamp(), vm.getBlockNumber());
        people = [submitter, solver, rival, challenger, drawer];
        for (uint256 i; i < VERIFIERS; ++i) {
            people.push(verifiers[i]);
        }
        deposited = (3 + VERIFIERS) * FUNDS;
    }

    // ------------------------------------------------------------------ actions

    /// @notice The honest next step of a random task; without it few tasks would get to their settlement.
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
            else if (board.auditOf(task).pending) draw();
            else if (_time <= board.auditOf(task).until) attest(seed, true);
            else finish(seed);
        }
    }

    function post(uint128 budget, uint128 restitution, uint128 fee, uint16 shape) public action {
        if (market.tasks() == MOST_TASKS || board.registered() == 0) return;
        Terms memory terms = _terms();
        terms.budget = uint128(bound(budget, 1, BUDGET));
        terms.restitution = uint128(bound(restitution, 0, terms.budget));
        // No offer takes a fee below half a token.
        terms.auditFee = uint128(bound(fee, UNIT / 2, 9 * UNIT));
        terms.verifiers = 1 + shape % 4;
        terms.segmentsPerVerifier = 1 + (shape / 4) % 5;
        terms.seatLock = 60 * UNIT;
        if (shape % 5 == 0) terms.auditFee = 0;
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

    /// @notice Bids as high and as late as it may be, several times: nobody can make bidding last longer.
    function bidLate(uint256 seed) external action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Bidding);
        if (TaskId.unwrap(task) == 0 || _time > entry.bidsUntil) return;
        for (uint256 i; i < 1 + (seed >> 8) % 16; ++i) {
            (bool any, uint256 most) = _mostBid(task, entry);
            if (!any) return;
            vm.warp(entry.bidsUntil);
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

    function expire(uint256 seed) external action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Training);
        if (TaskId.unwrap(task) == 0 || seed % 4 != 0) return;
        _reach(entry.trainUntil + 1);
        market.expire(task);
    }

    /// @notice Executes the first draw of the queue, whatever has become of its task.
    function draw() public action {
        uint40 task = board.firstDraw().task;
        if (task != 0) _draw(TaskId.wrap(task));
    }

    function attest(uint256 seed, bool all) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || _time > board.auditOf(task).until) return;
        Seat[] memory seats = board.seatsOf(task);
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].account == address(0) || seats[i].attested) continue;
            if (all || i % 2 == seed % 2) _attest(task, i);
        }
    }

    /// @notice Somebody shows the salt of an attested seat, in whatever state its task is while it is submitted.
    function inform(uint256 seed) external action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        uint256 seats = board.seatsOf(task).length;
        for (uint256 i; i < seats; ++i) {
            uint256 seat = (seed % seats + i) % seats;
            if (board.seatOf(task, seat).attested) return _inform(task, seat, rival);
        }
    }

    /// @notice Settles a task, or has its seats drawn again, or voids it.
    function finish(uint256 seed) public action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || board.auditOf(task).pending) return;
        Audit memory audit = board.auditOf(task);
        (bool silent, bool empty) = _missing(task);
        _reach(audit.until + 1);
        if (silent || (empty && (audit.escrowDraws < 8 || audit.purse != 0))) {
            board.redraw(task);
        } else if (entry.openGames == 0) {
            _reach(entry.challengeUntil + 1);
            if (empty) market.voidTask(task);
            else market.settle(task);
        }
    }

    /// @notice Lets a task's empty seats be drawn again until its escrow pays no more.
    function exhaust(uint256 seed) external {
        if (seed % 2 == 0) return;
        for (uint256 i; i < 24; ++i) {
            if (i % 3 == 0) finish(seed);
            else if (i % 3 == 1) draw();
            else attest(seed, true);
        }
    }

    /// @notice Nobody asks for another draw, or the beacon stops.
    function stall(uint256 seed) external action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || seed % 3 != 0) return;
        Audit memory audit = board.auditOf(task);
        if (audit.attested == market.termsOf(task).verifiers) return;
        uint256 since = audit.drawnAt == 0 ? beacon.timeOf(audit.round) : audit.drawnAt;
        if (since < audit.informedAt) since = audit.informedAt;
        _reach(uint64(since) + STALL_PERIOD + 1);
        market.stall(task);
    }

    function closeStalled(uint256 seed) external action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Unpaid);
        if (TaskId.unwrap(task) == 0 || entry.openGames != 0) return;
        _reach(entry.challengeUntil + 1);
        market.closeStalled(task);
    }

    /// @notice Frees who sits in tasks that are over.
    function release() public action {
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            if (market.taskOf(task).status == ITaskMarket.Status.Submitted) continue;
            if (board.auditOf(task).purse != 0) board.burnPurse(task);
            Seat[] memory seats = board.seatsOf(task);
            for (uint256 i; i < seats.length; ++i) {
                if (seats[i].account != address(0) && !seats[i].released) board.release(task, i);
            }
        }
    }

    function resume(uint256 who) public action {
        address account = verifiers[who % VERIFIERS];
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

    function convict(uint256 seed) external action {
        TaskId task = _challengeable(seed);
        // Stalled tasks are few: each that is met.
        if (TaskId.unwrap(task) == 0 || (seed % 2 == 0 && seed % 3 != 0)) return;
        vm.startPrank(game);
        if (market.taskOf(task).openGames == 0) market.gameOpened(task);
        market.convict(task, challenger);
        vm.stopPrank();
        _mockClaims(task, uint64(_time) + CLAIM_PERIOD);
    }

    /// @notice A seat of a convicted task claims its cost, its fee, or both; each once.
    function claim(uint256 seed, bool cost, bool fee) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Slashed);
        uint256 seats = board.seatsOf(task).length;
        if (seats == 0 || rests[task]) return;
        uint256 seat = seed % seats;
        (cost, fee) = (cost && !_claimed[task][seat][0], fee && !_claimed[task][seat][1]);
        if (cost) _claimed[task][seat][0] = true;
        if (fee) _claimed[task][seat][1] = true;
        address account = board.seatOf(task, seat).account;
        vm.prank(commitments);
        uint256 segments = fee ? market.termsOf(task).segmentsPerVerifier : 0;
        claimed[task] += market.compensate(task, account == address(0) ? challenger : account, cost, segments);
    }

    /// @notice The time for claims is over.
    function burnRest(uint256 seed) external action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Slashed);
        if (TaskId.unwrap(task) == 0 || seed % 3 != 0) return;
        _reach(ICommitments(commitments).claimsUntil(task) + 1);
        market.burnRest(task);
        rests[task] = true;
    }

    function withdraw(uint256 who, uint256 amount) external action {
        address person = people[who % people.length];
        amount = bound(amount, 0, vault.free(person) / 100);
        vm.prank(person);
        vault.withdraw(amount);
        withdrawn += amount;
    }

    /// @notice Resigns, and once the unbonding period is over leaves and registers again.
    function turnOver(uint256 who) external action {
        address account = verifiers[who % VERIFIERS];
        Registration memory entry = board.registrationOf(account);
        vm.startPrank(account);
        if (entry.resignedAt == 0) {
            if (board.registered() > 4) board.resign();
        } else if (entry.freeSince != type(uint40).max || entry.suspended) {
            _reach(uint64(entry.resignedAt) + UNBONDING_PERIOD + 1);
            board.quit();
            board.register(1, _offer());
        }
        vm.stopPrank();
    }

    // ------------------------------------------------------------------ for the invariants

    function contracts() external view returns (IVault, ITaskMarket, IAuditBoard) {
        return (vault, market, board);
    }

    function peopleCount() external view returns (uint256) {
        return people.length;
    }

    // ------------------------------------------------------------------ inside

    /// @dev A task in this status, searched from a random one on; 0 if there is none.
    function _find(uint256 seed, ITaskMarket.Status status)
        private
        view
        returns (TaskId task, ITaskMarket.Task memory entry)
    {
        uint256 count = market.tasks();
        for (uint256 i; i < count; ++i) {
            task = TaskId.wrap((seed % count + i) % count + 1);
            entry = market.taskOf(task);
            if (entry.status == status) return (task, entry);
        }
        return (TaskId.wrap(0), entry);
    }

    /// @dev The highest bid that the task takes now, if it takes any.
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

    /// @dev A submitted task, or one that stalled, within its window.
    function _challengeable(uint256 seed) private view returns (TaskId task) {
        ITaskMarket.Status status = seed % 2 == 0 ? ITaskMarket.Status.Submitted : ITaskMarket.Status.Unpaid;
        ITaskMarket.Task memory entry;
        (task, entry) = _find(seed >> 1, status);
        if (TaskId.unwrap(task) != 0 && _time > entry.challengeUntil) return TaskId.wrap(0);
    }

    /// @dev Whether a seat of the drawn task has a silent account, and whether one has none.
    function _missing(TaskId task) private view returns (bool silent, bool empty) {
        Seat[] memory seats = board.seatsOf(task);
        for (uint256 i; i < seats.length; ++i) {
            if (seats[i].account == address(0)) empty = true;
            else if (!seats[i].attested) silent = true;
        }
    }

    /// @dev Books the vault's events and the ends of tasks.
    function _book() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            bytes32 topic = logs[i].topics[0];
            if (topic == IAuditBoard.Silent.selector || topic == ILooks.Informed.selector) ++suspensions;
            if (topic == ITaskMarket.Stalled.selector) {
                stalled[TaskId.wrap(uint256(logs[i].topics[1]))] = true;
            }
            if (logs[i].emitter != address(vault)) continue;
            if (topic == IStakeVault.Locked.selector) {
                lockedIn[uint256(logs[i].topics[1])] += abi.decode(logs[i].data, (uint256));
            } else if (
                topic == IStakeVault.Released.selector || topic == IStakeVault.Paid.selector
                    || topic == IStakeVault.Burned.selector
            ) {
                takenOut[uint256(logs[i].topics[1])] += abi.decode(logs[i].data, (uint256));
            }
        }
        for (uint256 k = 1; k <= market.tasks(); ++k) {
            TaskId task = TaskId.wrap(k);
            ITaskMarket.Status status = market.taskOf(task).status;
            bool over = status > ITaskMarket.Status.Submitted && status != ITaskMarket.Status.Unpaid;
            if (over && ended[task] == ITaskMarket.Status.None) {
                ended[task] = status;
                ++endings[status];
            }
        }
    }
}
