// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";
import {Vm} from "forge-std/Test.sol";

/// @title Attempts to influence the draw that follows a draw of looks in the queue, once both words are
/// public: by ending the task with looks or letting its draw lapse, by registering, resigning, releasing and
/// resuming, by waiting.
contract BentLooksTest is Deployment {
    uint256 private constant ACTIONS = 16;

    /// @dev The first task waits for its looks, the second for its seats.
    TaskId private first;
    TaskId private second;

    function setUp() public override {
        super.setUp();
        for (uint256 i; i < 12; ++i) {
            verifiers.push(_registered(string.concat("more ", vm.toString(i)), uint8(i % 4)));
        }
        Terms memory terms = _terms();
        terms.lookChance = 7_000;
        second = _assigned(1);
        first = _drawn(terms, 1);
        _attestAll(first);
        vm.warp(vm.getBlockTimestamp() + 5);
        _submit(second);
        _reach(uint64(beacon.timeOf(board.auditOf(second).round)));
        assertEq(board.firstDraw().level, 1);
    }

    /// forge-config: default.fuzz.runs = 128
    function testFuzz_draw_anythingDoneAfterTheWord_succeeds(uint256 seed) public {
        bytes memory due = _due();
        for (uint256 i; i < ACTIONS; ++i) {
            _act(uint256(keccak256(abi.encode(seed, i))));
        }
        if (board.firstDraw().task == TaskId.unwrap(first)) _draw(first);
        for (uint256 i; i < ACTIONS; ++i) {
            _act(uint256(keccak256(abi.encode(seed, "between", i))));
        }
        if (board.firstDraw().task == TaskId.unwrap(second)) _draw(second);
        assertEq(abi.encode(_accounts(second)), due);
    }

    /// @dev An accomplice convicts the first task: the accounts that its looks would have bound are not free
    /// for the second draw either.
    function test_draw_looksOfAnEndedTask_succeeds() public {
        bytes memory due = _due();
        _convict(first);
        _draw(first);
        (uint256[] memory numbers,) = board.looksOf(first);
        assertEq(numbers.length, 0);
        _draw(second);
        assertEq(abi.encode(_accounts(second)), due);
    }

    /// @dev Nobody executes draws for a whole stall period; then one draw lapses.
    function test_draw_looksThatLapsed_succeeds() public {
        bytes memory due = _due();
        _reach(uint64(beacon.timeOf(board.auditOf(first).round)) + STALL_PERIOD + 1);
        board.lapse(first);
        _draw(first);
        _draw(second);
        assertEq(abi.encode(_accounts(second)), due);
    }

    /// @dev A seat is emptied before the round of the looks is published, so once their draw has lapsed the
    /// seat can be drawn again. Asking for that draw changes neither the lapsed draw nor the one behind it,
    /// although both words are public.
    function test_draw_looksThatLapsed_askedAgain_succeeds() public {
        (bytes memory asked, bytes32 seed) = _lapsed(true);
        (bytes memory due, bytes32 dueSeed) = _lapsed(false);
        assertEq(seed, dueSeed);
        assertEq(asked, due);
    }

    /// @dev The accounts that the second draw finds after the first one lapsed, and the seed of the first.
    function _lapsed(bool again) private returns (bytes memory found, bytes32 seed) {
        uint256 start = vm.snapshotState();
        vm.warp(beacon.timeOf(board.auditOf(first).round) - 1);
        _inform(first, 0, rival);
        _reach(uint64(beacon.timeOf(board.auditOf(first).round)) + STALL_PERIOD + 1);
        board.lapse(first);
        if (again) board.redraw(first);
        vm.recordLogs();
        _draw(first);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].topics[0] != IAuditBoard.Drawn.selector) continue;
            uint8 number;
            (number, seed) = abi.decode(logs[i].data, (uint8, bytes32));
            assertEq(number, 2);
        }
        assertNotEq(seed, 0);
        _draw(second);
        found = abi.encode(_accounts(second));
        vm.revertToState(start);
    }

    /// @dev The accounts that the second draw finds if nothing but the two draws happens. The first draw
    /// binds at least one account to a look.
    function _due() private returns (bytes memory due) {
        uint256 start = vm.snapshotState();
        _draw(first);
        (uint256[] memory numbers,) = board.looksOf(first);
        assertGt(numbers.length, 0);
        _draw(second);
        due = abi.encode(_accounts(second));
        vm.revertToState(start);
    }

    function _act(uint256 word) private {
        uint256 action = word % 7;
        word >>= 8;
        address account = verifiers[word % verifiers.length];
        if (action == 0 && board.registrationOf(account).resignedAt == 0) {
            vm.prank(account);
            board.resign();
        } else if (action == 1) {
            _registered(string.concat("late ", vm.toString(word)), uint8(word >> 8) % 8);
        } else if (action == 2 && word % 4 == 0 && _isSubmitted(first)) {
            _convict(first);
        } else if (action == 3) {
            vm.warp(vm.getBlockTimestamp() + word % 100);
        } else if (action == 4 && board.auditOf(first).pending && _isSubmitted(first) && word % 4 == 0) {
            _reach(uint64(beacon.timeOf(board.auditOf(first).round)) + STALL_PERIOD + 1);
            board.lapse(first);
        } else if (action == 5 && board.registrationOf(account).suspended) {
            vm.prank(account);
            board.resume();
        } else if (action == 6 && uint8(market.taskOf(first).status) != 3) {
            _release(word % 3);
        }
    }

    function _release(uint256 seat) private {
        if (!board.seatOf(first, seat).released) board.release(first, seat);
    }

    function _isSubmitted(TaskId task) private view returns (bool) {
        return uint8(market.taskOf(task).status) == 3
            && market.taskOf(task).challengeUntil >= vm.getBlockTimestamp();
    }
}
