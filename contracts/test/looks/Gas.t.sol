// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId} from "../../src/types/Ids.sol";
import {Snapshot} from "../harness/Snapshot.sol";
import {Digesting} from "./Digesting.sol";

/// @title Gas of each transaction of looks: two seats of two segments, states of two tensors, the longer one
/// with three chunks.
/// @notice Isolated, as in market/Gas.t.sol. Draws get the beacon's word directly, so they cost less than
/// there. 16 more hashes in a path cost about 20,000.
contract LooksGasTest is Digesting, Snapshot {
    /// @dev Gas limit of a transaction (EIP-7825).
    uint256 private constant MOST = 1 << 24;

    Spot private whole = Spot(2, 0, 1);

    /// forge-config: default.isolate = true
    function test_gas_accusedSeat_belowTargets_succeeds() public {
        _start();
        _attest(0);
        _attest(1);
        _matches("attest last seat", 140_000);
        _drawPicks(3);
        _matches("draw two looks", 400_000);
        _reveal(32);
        _matches("reveal digest", 120_000);
        _attest(33);
        _matches("attest look", 140_000);
        _attest(32);
        _drawPicks(0);
        _matches("draw no looks", 160_000);
        GameId id = _openGame(32);
        _accuse(32, id, whole);
        _matches("accuse", 330_000);
        _answer(32, whole);
        _matches("answer", 140_000);
        _accuse(32, NONE, whole);
        _matches("accuse again", 230_000);
        GameId own = _challengeBy(_account(0), _segmentOf(32));
        _contest(32, own);
        _matches("contest", 150_000);
        _timeOut(own);
        looks.takeUnanswered(task, 32);
        _matches("take unanswered", 200_000);
    }

    /// forge-config: default.isolate = true
    function test_gas_silentSeat_belowTargets_succeeds() public {
        _looked(1);
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        looks.takeUnrevealed(task, 32);
        _matches("take unrevealed", 180_000);
        _redraw();
        _matches("redraw look", 200_000);
    }

    /// @dev The maximum number of looks; the queue must not halt at them. Nobody is free, so every try fails.
    /// Room is left for places with long histories: 32,000 more for each of the 256 tries (Pool.t.sol bounds
    /// a whole search by 38,000).
    /// forge-config: default.isolate = true
    function test_gas_mostLooks_belowTargets_succeeds() public {
        (seats, each, chance) = (8, 4, 10_000);
        for (uint256 k = 8; k < accounts.length; ++k) {
            vm.prank(accounts[k]);
            board.resign();
        }
        _start();
        for (uint256 seat; seat < seats; ++seat) {
            vm.prank(_account(seat));
            board.attest(task, seat, 0, 0);
        }
        _drawPicks(type(uint32).max);
        _matches("draw looks in vain", MOST - 256 * 32_000);
        assertTrue(_audit().audited);
    }
}
