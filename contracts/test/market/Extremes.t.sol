// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../../src/types/Ids.sol";
import {Offer} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Snapshot} from "../harness/Snapshot.sol";
import {Deployment} from "./Deployment.sol";

/// @title Gas of the most expensive calls for the greatest terms; a transaction has at most 2^24 gas
/// (EIP-7825).
/// @notice Isolated, as in Gas.t.sol. A draw that did not fit would halt the queue.
contract ExtremesTest is Deployment, Snapshot {
    uint256 private constant MOST = 1 << 24;
    uint256 private constant CROWD = 320;

    /// @dev The longest bundle address, the most seats, and for each as many segments as the task has.
    function _greatest() private view returns (Terms memory terms) {
        terms = _terms();
        (terms.verifiers, terms.segmentsPerVerifier) = (32, 5);
        terms.auditFee = 8 * UNIT;
        terms.seatLock = 50 * UNIT;
        // 32 seats with fee and cost: 4 / 3 of 32 x 45 + 110.
        terms.stake = 2100 * UNIT;
        bytes memory bundle = new bytes(1024);
        for (uint256 i; i < 1024; ++i) {
            bundle[i] = "x";
        }
        terms.bundle = string(bundle);
    }

    /// forge-config: default.isolate = true
    function test_gas_everySeatSilent_succeeds() public {
        _crowd(100, _offer());
        TaskId task = _post(_greatest());
        _below("post");
        vm.prank(solver);
        market.bid(task, 1);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
        _submit(task);
        _below("submit");
        _draw(task);
        _below("draw");
        for (uint256 i; i < 32; ++i) {
            assertNotEq(board.seatsOf(task)[i].account, address(0));
        }
        _silence(task);
        board.redraw(task);
        _below("redraw");
        _draw(task);
        _below("draw again");
        _attestFound(task);
        vm.warp(vm.getBlockTimestamp() + STALL_PERIOD + 1);
        if (board.auditOf(task).attested == 32) market.settle(task);
        else market.stall(task);
        _below("end");
    }

    /// @dev Every try finds an account whose offer asks for a higher fee: 256 tries, and every seat stays
    /// empty.
    /// forge-config: default.isolate = true
    function test_gas_everyTryInVain_succeeds() public {
        for (uint256 i; i < VERIFIERS; ++i) {
            vm.prank(verifiers[i]);
            board.resign();
        }
        Offer memory offer = _offer();
        offer.fee = type(uint112).max;
        _crowd(CROWD, offer);
        TaskId task = _drawn(_greatest(), 1);
        // Room is left for places with long histories: 32,000 more for each of the 256 tries (Pool.t.sol
        // bounds a whole search by 38,000).
        _matches("draw in vain", MOST - 256 * 32_000);
        for (uint256 i; i < 32; ++i) {
            assertEq(board.seatsOf(task)[i].account, address(0));
        }
    }

    function _crowd(uint256 count, Offer memory offer) private {
        for (uint256 i; i < count; ++i) {
            address account = makeAddr(string.concat("crowd ", vm.toString(i)));
            _fund(account);
            vm.prank(account);
            board.register(uint8(i % 3), offer);
        }
    }

    function _attestFound(TaskId task) private {
        for (uint256 i; i < 32; ++i) {
            if (board.seatsOf(task)[i].account != address(0)) _attest(task, i);
        }
    }

    function _below(string memory call) private {
        uint256 used = vm.lastCallGas().gasTotalUsed;
        emit log_named_uint(call, used);
        assertLt(used, MOST, call);
    }
}
