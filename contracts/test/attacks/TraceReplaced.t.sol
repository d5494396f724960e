// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {InstructionOpening} from "../../src/types/Openings.sol";
import {Play} from "../dispute/Play.sol";

/// @title A chain re-organisation in which the solver posts another trace (attack 29): the challenger's move
/// was about the first.
contract TraceReplacedTest is Play {
    function setUp() public override {
        super.setUp();
        _start();
    }

    /// @dev `selectCall` opens nothing in the trace. If it were accepted in a frame where the call agrees,
    /// nothing would be left to judge below, and an honest challenger would lose its bond.
    function test_selectCall_afterAnotherTrace_reverts() public {
        GameId id = _challenge();
        _expandSteps();
        _selectStep(id);
        uint256 fork = vm.snapshotState();
        _expandTop();
        bytes32 head = _head(id);
        InstructionOpening memory call = _open(top, 3);
        vm.revertToState(fork);
        topRoots[6] = keccak256("another trace");
        _expandTop();
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongHead.selector);
        game.selectCall(id, head, call);
    }
}
