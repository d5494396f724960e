// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Attempts to influence a draw whose word is public: by ending tasks, by registering, leaving,
/// releasing and resuming, by waiting.
contract BentDrawsTest is Deployment {
    uint256 private constant ACTIONS = 24;

    /// @dev `first` and `second` wait in the queue; `over` has ended with its seats not yet released;
    /// `silent` can be drawn again.
    TaskId private first;
    TaskId private second;
    TaskId private over;
    TaskId private silent;

    function setUp() public override {
        super.setUp();
        for (uint256 i; i < 10; ++i) {
            verifiers.push(_registered(string.concat("more ", vm.toString(i)), uint8(i % 4)));
        }
        over = _drawn(1);
        silent = _drawn(1);
        (first, second) = (_assigned(1), _assigned(1));
        _convict(over);
        _submit(first);
        vm.warp(vm.getBlockTimestamp() + 5);
        _submit(second);
        _silence(silent);
        // Both words are public.
        _reach(uint64(beacon.timeOf(board.auditOf(second).round)));
    }

    /// @dev The second draw finds the same accounts regardless of the actions before its execution and their
    /// order. So does the first, unless its task is over.
    /// forge-config: default.fuzz.runs = 128
    function testFuzz_draw_anythingDoneAfterTheWord_succeeds(uint256 seed) public {
        uint256 start = vm.snapshotState();
        _draw(first);
        _draw(second);
        bytes memory dueFirst = abi.encode(_accounts(first));
        bytes memory dueSecond = abi.encode(_accounts(second));
        vm.revertToState(start);
        bool ended;
        for (uint256 i; i < ACTIONS; ++i) {
            uint256 word = uint256(keccak256(abi.encode(seed, i)));
            if (_act(word) && board.auditOf(first).drawnAt == 0) ended = true;
        }
        if (board.firstDraw().task == TaskId.unwrap(first)) _draw(first);
        for (uint256 i; i < ACTIONS; ++i) {
            uint256 word = uint256(keccak256(abi.encode(seed, "between", i)));
            // Any action except number 0, the first draw, which is already executed.
            if (word % 9 != 0) _act(word);
        }
        _draw(second);
        if (!ended) assertEq(abi.encode(_accounts(first)), dueFirst);
        assertEq(abi.encode(_accounts(second)), dueSecond);
    }

    /// @dev An accomplice ends the first task so that the accounts that it would bind are free for the second
    /// draw. They are free only from the execution of the first draw on, which is after the second round was
    /// fixed, so the second draw skips them.
    function test_draw_firstTaskEnded_succeeds() public {
        uint256 start = vm.snapshotState();
        _draw(first);
        address[] memory found = _accounts(first);
        _draw(second);
        bytes memory due = abi.encode(_accounts(second));
        vm.revertToState(start);
        _convict(first);
        _draw(first);
        for (uint256 i; i < 3; ++i) {
            assertEq(board.registrationOf(found[i]).freeSince, vm.getBlockTimestamp());
        }
        assertEq(board.seatsOf(first).length, 0);
        assertEq(vault.free(drawer), 3 * DRAW_FEE);
        _draw(second);
        assertEq(abi.encode(_accounts(second)), due);
    }

    /// @dev A hundred accounts register and resign: the draw of a task posted later fills every seat, and
    /// with none of them.
    /// forge-config: default.fuzz.runs = 16
    function testFuzz_draw_afterManyResigned_succeeds(uint64 chain) public {
        vm.chainId(bound(chain, 1, type(uint64).max));
        _draw(first);
        _draw(second);
        for (uint256 i; i < 12; ++i) {
            _registered(string.concat("free ", vm.toString(i)), 3);
        }
        for (uint256 i; i < 100; ++i) {
            address account = _registered(string.concat("passing ", vm.toString(i)), uint8(i % 8));
            vm.prank(account);
            board.resign();
        }
        TaskId task = _drawn(1);
        address[] memory accounts = _accounts(task);
        for (uint256 i; i < 3; ++i) {
            assertNotEq(accounts[i], address(0));
            assertEq(board.registrationOf(accounts[i]).resignedAt, 0);
        }
    }

    /// @dev One action.
    /// @return ended Whether the action ended the first task.
    function _act(uint256 word) private returns (bool ended) {
        uint256 action = word % 9;
        word >>= 8;
        address account = verifiers[word % verifiers.length];
        if (action == 0 && board.firstDraw().task == TaskId.unwrap(first)) {
            _draw(first);
        } else if (action == 1 && board.registrationOf(account).resignedAt == 0) {
            vm.prank(account);
            board.resign();
        } else if (action == 2) {
            _registered(string.concat("late ", vm.toString(word)), uint8(word >> 8) % 8);
        } else if (action == 3 && !board.seatsOf(over)[word % 3].released) {
            board.release(over, word % 3);
        } else if (action == 4 && _isSubmitted(silent) && !board.auditOf(silent).pending) {
            board.redraw(silent);
        } else if (action == 5 && board.registrationOf(account).suspended) {
            vm.prank(account);
            board.resume();
        } else if (action == 6) {
            vm.warp(vm.getBlockTimestamp() + word % 100);
        } else if (action == 7 && word % 4 == 0 && _isSubmitted(first)) {
            _convict(first);
            return true;
        } else if (action == 8 && _isSubmitted(silent) && word % 3 == 0) {
            _convict(silent);
        }
    }

    function _isSubmitted(TaskId task) private view returns (bool) {
        return
            market.taskOf(task).challengeUntil > vm.getBlockTimestamp()
                && uint8(market.taskOf(task).status) == 3;
    }
}
