// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Snapshot} from "../harness/Snapshot.sol";
import {Deployment} from "./Deployment.sol";

/// @title Gas of each transaction of an honest task: q = 2 segments per seat, K = 5; 66 registrations, few of
/// them taken. The solver, who has free tokens, executes the draw.
/// @notice Isolated: every call is a separate transaction, including cold storage, calldata and the 21,000.
contract MarketGasTest is Deployment, Snapshot {
    uint256 private constant MORE = 60;

    function setUp() public override {
        super.setUp();
        for (uint256 i; i < MORE; ++i) {
            _registered(string.concat("one of many ", vm.toString(i)), 1);
        }
        drawer = solver;
    }

    /// forge-config: default.isolate = true
    function test_gas_honestWay_belowTargets_succeeds() public {
        TaskId task = _post();
        _matches("post", 600_000);
        vm.prank(rival);
        market.bid(task, BUDGET);
        _matches("bid", 200_000);
        // The most expensive bid: it releases the other bidder's penalty and moves the end.
        vm.warp(market.taskOf(task).bidsUntil);
        vm.prank(solver);
        market.bid(task, BUDGET / 2);
        _matches("bid again", 200_000);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
        _matches("assign", 100_000);
        _progress(task, 3);
        _matches("first progress", 120_000);
        _progress(task, 4);
        _matches("progress", 100_000);
        _submit(task);
        _matches("submit", 300_000);
        _draw(task);
        _matches("draw", 330_000);
        for (uint256 i; i < 3; ++i) {
            _attest(task, i);
            _matches("attest", 90_000);
        }
        _endWindow(task);
        market.settle(task);
        // dispute.md section 9.
        _matches("settle", 250_000);
        board.release(task, 0);
        _matches("release", 60_000);
    }

    /// forge-config: default.isolate = true
    function test_gas_cancel_belowTargets_succeeds() public {
        TaskId task = _post();
        vm.prank(submitter);
        market.cancel(task);
        _matches("cancel", 60_000);
    }

    /// forge-config: default.isolate = true
    function test_gas_oneSeatMore_belowTargets_succeeds() public {
        TaskId task = _drawnWith(4);
        _matches("draw of 4 seats", 390_000);
        _settle(task);
        _matches("settle 4 seats", 280_000);
    }

    /// forge-config: default.isolate = true
    function test_gas_mostSeats_belowTargets_succeeds() public {
        TaskId task = _drawnWith(32);
        // 60,000 for each seat beyond three.
        _matches("draw of 32 seats", 330_000 + 29 * 60_000);
        _settle(task);
        _matches("settle 32 seats", 250_000 + 29 * 30_000);
    }

    /// @dev A silent seat: its account pays for the draw.
    /// forge-config: default.isolate = true
    function test_gas_redraw_belowTargets_succeeds() public {
        TaskId task = _drawn(1);
        _attest(task, 0);
        _attest(task, 1);
        _silence(task);
        board.redraw(task);
        _matches("redraw", 300_000);
        _draw(task);
        _matches("draw again", 330_000);
        address account = board.seatsOf(task)[2].account;
        assertNotEq(account, address(0));
        _attest(task, 2);
        _endWindow(task);
        market.settle(task);
    }

    /// @dev The informer's free balance is not zero before.
    /// forge-config: default.isolate = true
    function test_gas_inform_belowTargets_succeeds() public {
        TaskId task = _drawn(1);
        _attestAll(task);
        bytes32 salt = _salt(board.seatOf(task, 1).account);
        bytes32 commitment =
            keccak256(abi.encode(block.chainid, address(looks), task, uint256(1), rival, salt));
        vm.prank(rival);
        looks.commitInforming(commitment);
        _matches("commit informing", 70_000);
        vm.roll(vm.getBlockNumber() + 1);
        vm.prank(rival);
        looks.inform(task, 1, DIGEST, salt);
        _matches("inform", 160_000);
        _silence(task);
        board.redraw(task);
        _matches("redraw informed", 120_000);
    }

    function _drawnWith(uint16 seats) private returns (TaskId) {
        Terms memory terms = _terms();
        terms.verifiers = seats;
        return _drawn(terms, 1);
    }

    function _settle(TaskId task) private {
        _attestAll(task);
        _endWindow(task);
        market.settle(task);
    }
}
