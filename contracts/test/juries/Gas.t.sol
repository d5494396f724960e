// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IJuries} from "../../src/interfaces/IJuries.sol";
import {Snapshot} from "../harness/Snapshot.sol";
import {Claiming} from "./Claiming.sol";

/// @title Gas of each transaction of a jury, for states of two tensors, the longer one with three chunks. 16
/// more hashes in a path cost about 20,000; an opening has five paths.
/// @notice Isolated, as in market/Gas.t.sol.
contract JuriesGasTest is Claiming, Snapshot {
    /// @dev Gas limit of a transaction (EIP-7825).
    uint256 private constant MOST = 1 << 24;

    /// forge-config: default.isolate = true
    function test_gas_jury_belowTargets_succeeds() public {
        _start();
        _claim(0, 3);
        _matches("claim withheld", 320_000);
        _drawWith(0);
        _voteYes(1);
        _matches("vote", 80_000);
        _voteYes(14);
        _voteNo(16);
        _matches("vote no", 60_000);
        _reach(uint256(_audit().until) + 1);
        _object(0, _walk(0, 1));
        _matches("object", 120_000);
        IJuries.Opening memory opening = _opening(FIRST, 3, 0, 1);
        _openWith(FIRST, _digest(FIRST, 3), opening);
        _matches("open", 200_000);
    }

    /// @dev The maximum number of jurors, in the most expensive verdict: all voted yes and lose their locks.
    /// forge-config: default.isolate = true
    function test_gas_mostJurors_belowTargets_succeeds() public {
        jurors = 32;
        _register(60);
        _seated(3);
        for (uint256 slot; slot < 32; ++slot) {
            address account = _account(FIRST + slot);
            vm.prank(account);
            board.attest(task, FIRST + slot, "digest", "salt hash");
        }
        _reach(uint256(_audit().until) + 1);
        _object(0, 0);
        _reach(uint256(juries.claimOf(task).until) + 1);
        _close();
        _matches("close unopened", MOST / 4);
        assertEq(_remaining(market.taskOf(task).stake), STAKE);
    }

    /// forge-config: default.isolate = true
    function test_gas_allPaid_belowTargets_succeeds() public {
        jurors = 32;
        _register(60);
        _seated(3);
        _voteNo(type(uint32).max);
        _reach(uint256(_audit().until) + 1);
        _close();
        _matches("close withheld", MOST / 4);
    }
}
