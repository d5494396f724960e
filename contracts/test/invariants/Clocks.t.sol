// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId} from "../../src/types/Ids.sol";
import {ClocksHandler} from "./ClocksHandler.sol";
import {Test} from "forge-std/Test.sol";

/// @title Every game ends within twice the clock, whatever the parties do (dispute.md section 6, "Clocks").
contract ClocksInvariants is Test {
    uint256 private constant AT_ONCE = 16;

    ClocksHandler private handler;
    IDisputeGame private game;
    uint256 private time;

    function setUp() public {
        handler = new ClocksHandler();
        handler.setUp();
        (game, time) = (handler.played(), handler.time());
        bytes4[] memory actions = new bytes4[](14);
        actions[0] = handler.open.selector;
        actions[1] = handler.ask.selector;
        actions[2] = handler.answer.selector;
        actions[3] = handler.descend.selector;
        actions[4] = handler.claim.selector;
        actions[5] = handler.lapse.selector;
        actions[6] = handler.open.selector;
        actions[7] = handler.descend.selector;
        actions[8] = handler.claim.selector;
        actions[9] = actions[10] = actions[11] = handler.pass.selector;
        (actions[12], actions[13]) = (handler.fetch.selector, handler.close.selector);
        targetContract(address(handler));
        targetSelector(FuzzSelector(address(handler), actions));
    }

    /// @dev The deadline of the side to move is at most twice the clock after the game began to be played;
    /// after it anyone can end the game.
    /// forge-config: default.invariant.runs = 32
    function invariant_aGameEndsWithinTwiceTheClock() public {
        for (uint256 k = 1; k <= game.games(); ++k) {
            GameId id = GameId.wrap(k);
            IDisputeGame.Game memory g = game.gameOf(id);
            if (g.phase == IDisputeGame.Phase.Closed || handler.convicted()) continue;
            if (g.deadline == type(uint64).max) continue;
            uint256 last = handler.began(id) + 2 * time;
            assertLe(g.deadline, last);
            uint256 now_ = vm.getBlockTimestamp();
            uint256 before = vm.snapshotState();
            vm.warp(now_ > last ? now_ : last + 1);
            game.timeOut(id);
            vm.revertToState(before);
            vm.warp(now_);
        }
    }

    /// forge-config: default.invariant.runs = 32
    function invariant_noSideUsesMoreThanItsClock() public view {
        for (uint256 k = 1; k <= game.games(); ++k) {
            IDisputeGame.Game memory g = game.gameOf(GameId.wrap(k));
            assertLe(g.solverSpent, time);
            assertLe(g.challengerSpent, time);
        }
    }

    /// @dev The games in progress are played, up to sixteen, earliest first; no clock runs in the others.
    /// forge-config: default.invariant.runs = 32
    function invariant_sixteenGamesArePlayedInTheirOrder() public view {
        if (handler.convicted()) return;
        uint256 live;
        for (uint256 k = 1; k <= game.games(); ++k) {
            IDisputeGame.Game memory g = game.gameOf(GameId.wrap(k));
            if (g.phase == IDisputeGame.Phase.Closed) continue;
            bool waits = g.deadline == type(uint64).max;
            assertEq(waits, live >= AT_ONCE);
            if (waits) assertEq(uint256(g.solverSpent) + g.challengerSpent, 0);
            ++live;
        }
    }

    /// forge-config: default.invariant.runs = 32
    function invariant_theBalanceIsCreditsAndOpenDeposits() public view {
        assertEq(address(game).balance, handler.owed());
    }

    /// @dev The handler is effective: random runs end games by time against either side, make games wait, and
    /// end some games that owe deposits.
    function test_handler_reachesBothEnds_succeeds() public {
        uint256 start = vm.snapshotState();
        bool[4] memory reached;
        for (uint256 run; run < 20; ++run) {
            for (uint256 i; i < 80; ++i) {
                _act(uint256(keccak256(abi.encode(run, i))));
            }
            reached[0] = reached[0] || handler.convicted();
            reached[1] = reached[1] || handler.dismissed() != 0;
            reached[2] = reached[2] || handler.waited();
            reached[3] = reached[3] || handler.returned();
            bool[4] memory kept = reached;
            vm.revertToState(start);
            start = vm.snapshotState();
            reached = kept;
        }
        assertTrue(reached[0] && reached[1] && reached[2] && reached[3]);
    }

    function _act(uint256 seed) private {
        uint256 choice = seed % 12;
        seed >>= 8;
        if (choice < 2) handler.open(seed);
        else if (choice == 2) handler.ask(seed);
        else if (choice == 3) handler.answer(seed);
        else if (choice < 6) handler.descend(seed);
        else if (choice < 8) handler.claim(seed);
        else if (choice == 8) handler.lapse(seed);
        else handler.pass(seed);
    }
}
