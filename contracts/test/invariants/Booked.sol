// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {IStakeVault} from "../../src/interfaces/IStakeVault.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {IVault} from "../harness/Production.sol";
import {Deployment} from "../market/Deployment.sol";
import {Vm} from "forge-std/Vm.sol";

/// @title The records that a handler keeps of each action, and its own time and block number.
abstract contract Booked is Deployment {
    /// @dev A few more than most tasks need, so that juries can have majorities.
    uint256 private constant MORE_VERIFIERS = 4;
    address[] public people;
    /// @dev Sums of the vault's events for each lock: amounts put in and taken out.
    mapping(uint256 lock => uint256) public lockedIn;
    mapping(uint256 lock => uint256) public takenOut;
    /// @dev The first final status seen of a task.
    mapping(TaskId task => ITaskMarket.Status) public ended;
    mapping(ITaskMarket.Status => uint256) public endings;
    mapping(TaskId task => bool) public stalled;
    /// @dev Amount that seats got of a convicted stake, and whether the rest was burned.
    mapping(TaskId task => uint256) public claimed;
    mapping(TaskId task => bool) public rests;
    /// @dev Amount that a jury took from the stake of a task whose data are withheld.
    mapping(TaskId task => uint256) public taken;
    /// @dev How often an action of this name did something.
    mapping(bytes32 name => uint256) public done;
    /// @dev Number of events that may burn tokens: suspensions, verdicts.
    uint256 public causes;
    uint256 public deposited;
    uint256 public withdrawn;
    uint256 internal _time;
    uint256 internal _block;
    uint256 private _actions;

    modifier action() {
        vm.warp(_time);
        vm.roll(_block);
        vm.recordLogs();
        // Every time limit is longer than this many actions of one second each.
        if (++_actions % 16 == 0) _duties();
        _;
        _book();
        (_time, _block) = (vm.getBlockTimestamp() + 1, vm.getBlockNumber() + 1);
    }

    function setUp() public virtual override {
        vm.recordLogs();
        super.setUp();
        for (uint256 i; i < MORE_VERIFIERS; ++i) {
            verifiers.push(_registered(string.concat("verifier ", vm.toString(VERIFIERS + i)), 1));
        }
        _book();
        (_time, _block) = (vm.getBlockTimestamp(), vm.getBlockNumber());
        people = [submitter, solver, rival, challenger, drawer];
        for (uint256 i; i < verifiers.length; ++i) {
            people.push(verifiers[i]);
        }
        deposited = (3 + verifiers.length) * FUNDS;
    }

    // ------------------------------------------------------------------ for the invariants

    function contracts() external view returns (IVault, ITaskMarket, IAuditBoard, ILooks, IJuries) {
        return (vault, market, board, looks, juries);
    }

    function everybody() external view returns (address[] memory) {
        return people;
    }

    // ------------------------------------------------------------------ inside

    /// @dev Honest accounts do what they must.
    function _duties() internal virtual;

    /// @dev A task in this status, searched from a random task on; 0 if there is none.
    function _find(uint256 seed, ITaskMarket.Status status)
        internal
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

    /// @dev Records the vault's events and the ends of tasks.
    function _book() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            bytes32 topic = logs[i].topics[0];
            bool caught = topic == ILooks.Informed.selector || topic == ILooks.Unrevealed.selector
                || topic == ILooks.Unanswered.selector || topic == IJuries.Unopened.selector;
            bool judged = topic == IJuries.Judged.selector;
            if (caught || judged || topic == IAuditBoard.Silent.selector) ++causes;
            if (judged) _bookVerdict(TaskId.wrap(uint256(logs[i].topics[1])));
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
            ITaskMarket.Status status = market.statusOf(task);
            bool over = status > ITaskMarket.Status.Submitted && status != ITaskMarket.Status.Unpaid;
            if (over && ended[task] == ITaskMarket.Status.None) {
                ended[task] = status;
                ++endings[status];
            }
        }
    }

    /// @dev Records what a verdict that data are withheld took from the stake; a task has at most one.
    function _bookVerdict(TaskId task) private {
        ITaskMarket.Task memory entry = market.taskOf(task);
        if (entry.status == ITaskMarket.Status.Submitted) return;
        taken[task] = market.termsOf(task).stake - _remaining(entry.stake);
    }
}
