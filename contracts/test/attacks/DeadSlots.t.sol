// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Registering many slots and resigning, again and again with the same stake, to make every later draw fail.
contract DeadSlotsTest is Deployment {
    uint256 private constant ROUNDS = 40;
    uint32 private constant SLOTS = 200;

    /// @dev Who left before the post is not even numbered: every draw finds its verifiers with the first word.
    function testFuzz_draw_afterManyResigned_succeeds(bytes32 mixHash) public {
        _churn();
        TaskId task = _submitted(1);
        _draw(task, mixHash);
        _attestAll(task);
        assertTrue(board.satisfied(task));
        _assertHonest(task);
    }

    /// @dev The snapshot of the post decides: what comes and goes after it moves no duty.
    function testFuzz_draw_churnAfterPost_succeeds(bytes32 mixHash) public {
        TaskId task = _post();
        uint256 start = vm.snapshotState();
        bytes memory still = _duties(task, mixHash);
        vm.revertToState(start);
        _churn();
        vm.prank(rival);
        board.register(SLOTS);
        assertEq(_duties(task, mixHash), still);
    }

    /// @dev Seats change hands after the draw block, when its mixHash is known, and before `draw`.
    function testFuzz_draw_seatsTakenOverAfterBlock_succeeds(bytes32 mixHash, uint256 leaving) public {
        TaskId task = _submitted(1);
        uint256 start = vm.snapshotState();
        _draw(task, mixHash);
        bytes memory still = abi.encode(board.dutiesOf(task));
        vm.revertToState(start);
        vm.roll(market.taskOf(task).drawBlock);
        vm.prank(verifiers[leaving % verifiers.length]);
        board.resign();
        vm.prank(rival);
        board.register(2);
        _draw(task, mixHash);
        assertEq(abi.encode(board.dutiesOf(task)), still);
    }

    /// @dev The attacker's stake is free again after each round.
    function _churn() private {
        for (uint256 round; round < ROUNDS; ++round) {
            vm.startPrank(rival);
            board.register(SLOTS);
            board.resign();
            vm.stopPrank();
        }
    }

    function _duties(TaskId task, bytes32 mixHash) private returns (bytes memory) {
        vm.prank(solver);
        market.bid(task, 1);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
        _submit(task);
        _draw(task, mixHash);
        return abi.encode(board.dutiesOf(task));
    }

    function _assertHonest(TaskId task) private view {
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        for (uint256 i; i < duties.length; ++i) {
            assertNotEq(duties[i].verifier, rival);
        }
    }
}
