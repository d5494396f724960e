// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {IStakeVault} from "../../src/interfaces/IStakeVault.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Bids} from "../../src/libraries/Bids.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IVault} from "../harness/Production.sol";
import {Deployment} from "../market/Deployment.sol";
import {Vm} from "forge-std/Vm.sol";

/// @title Drives up to six tasks through anything that may happen to them, in any order.
/// @notice An action that nothing is ready for does nothing; none reverts. Time and blocks are the handler's own.
contract MarketHandler is Deployment {
    uint256 private constant MOST_TASKS = 6;

    address[] public people;
    /// @dev Sums over the vault's events of each lock: put in, taken out.
    mapping(uint256 lock => uint256) public lockedIn;
    mapping(uint256 lock => uint256) public takenOut;
    /// @dev The first final status that was seen of a task.
    mapping(TaskId task => ITaskMarket.Status) public ended;
    mapping(ITaskMarket.Status => uint256) public endings;
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
        people = [submitter, solver, rival, challenger, drawer, verifiers[0], verifiers[1], verifiers[2]];
        for (uint256 i; i < people.length; ++i) {
            deposited += vault.free(people[i]);
        }
        deposited += 3 * 100 * uint256(UNIT); // three registrations of two slots
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
            if (entry.openGames != 0) {
                closeGame(seed);
            } else if (board.drawLost(task)) {
                finish(seed);
            } else if (board.drawnAt(task) == 0) {
                draw(seed, bytes32(seed));
            } else if (board.satisfied(task) || _time > board.drawnAt(task) + _terms().attestPeriod) {
                finish(seed);
            } else {
                attest(seed, true);
            }
        }
    }

    function post(uint128 budget, uint128 restitution, uint128 fee, uint16 shape) public action {
        if (market.tasks() == MOST_TASKS || board.liveSlots() == 0) return;
        Terms memory terms = _terms();
        terms.budget = uint128(bound(budget, 1, BUDGET));
        terms.restitution = uint128(bound(restitution, 0, terms.budget));
        terms.auditFee = uint128(bound(fee, 0, BUDGET));
        terms.verifiers = 1 + shape % 4;
        terms.segmentsPerVerifier = 1 + (shape / 4) % 6;
        terms.matches = 1 + (shape / 24) % terms.verifiers;
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
        _reach(entry.bidsUntil);
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
        if (TaskId.unwrap(task) == 0 || entry.openGames != 0 || seed % 4 != 0) return;
        _reach(entry.trainUntil);
        market.expire(task);
    }

    function draw(uint256 seed, bytes32 mixHash) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || board.drawnAt(task) != 0 || board.drawLost(task)) return;
        _draw(task, mixHash);
    }

    /// @notice One draw, or in one case of three the task's every draw.
    function miss(uint256 seed) external action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || board.drawnAt(task) != 0) return;
        uint256 draws = (seed >> 8) % 3 == 0 ? 3 : 1;
        for (uint256 i; i < draws; ++i) {
            vm.roll(uint256(market.taskOf(task).drawBlock) + 8192);
            if (board.missesOf(task) < 2) board.missed(task);
        }
    }

    function attest(uint256 seed, bool all) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || _time > board.drawnAt(task) + _terms().attestPeriod) return;
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        for (uint256 i; i < duties.length; ++i) {
            if (!duties[i].attested && (all || i % 2 == seed % 2)) _attest(task, i);
        }
    }

    function finish(uint256 seed) public action {
        (TaskId task, ITaskMarket.Task memory entry) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) == 0 || entry.openGames != 0) return;
        _reach(entry.challengeUntil);
        if (board.satisfied(task)) market.settle(task);
        else if (board.drawnAt(task) != 0 || board.drawLost(task)) market.voidTask(task);
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

    function convict(uint256 seed, uint256 reward) external action {
        TaskId task = _challengeable(seed);
        if (TaskId.unwrap(task) == 0 || seed % 3 != 0) return;
        vm.startPrank(game);
        if (market.taskOf(task).openGames == 0) market.gameOpened(task);
        market.convict(task, challenger, reward);
        vm.stopPrank();
    }

    function withdraw(uint256 who, uint256 amount) external action {
        address person = people[who % people.length];
        amount = bound(amount, 0, vault.free(person) / 100);
        vm.prank(person);
        vault.withdraw(amount);
        withdrawn += amount;
    }

    function turnOver(uint256 who) external action {
        address verifier = verifiers[who % 3];
        if (board.liveSlots() < 4) return;
        vm.startPrank(verifier);
        board.resign();
        board.register(2);
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

    function _challengeable(uint256 seed) private view returns (TaskId task) {
        ITaskMarket.Task memory entry;
        (task, entry) = _find(seed, ITaskMarket.Status.Submitted);
        if (TaskId.unwrap(task) != 0) return _time <= entry.challengeUntil ? task : TaskId.wrap(0);
        (task, entry) = _find(seed, ITaskMarket.Status.Training);
        if (entry.size == 0 || _time > entry.trainUntil) return TaskId.wrap(0);
    }

    /// @dev Waits until just after `until`.
    function _reach(uint64 until) private {
        if (vm.getBlockTimestamp() <= until) vm.warp(uint256(until) + 1);
    }

    /// @dev Books the vault's events and the ends of tasks.
    function _book() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            bytes32 topic = logs[i].topics[0];
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
            if (status > ITaskMarket.Status.Submitted && ended[task] == ITaskMarket.Status.None) {
                ended[task] = status;
                ++endings[status];
            }
        }
    }
}
