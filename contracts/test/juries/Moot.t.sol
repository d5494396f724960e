// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Digesting} from "../looks/Digesting.sol";

/// @title An accusation that is open when a jury ends the task: the accuser loses nothing.
contract MootByAJuryTest is Digesting {
    uint256 private constant FIRST = 160;

    function _terms(bytes32 program, bytes32 constantsRoot, bytes32 initialState, uint32 segments)
        internal
        view
        override
        returns (Terms memory terms)
    {
        terms = super._terms(program, constantsRoot, initialState, segments);
        terms.jurors = 3;
    }

    function test_closeMoot_withheld_succeeds() public {
        _looked(3);
        _reveal(32);
        _attest(32);
        _accuse(32, _openGame(32), Spot(2, 0, 1));
        address looker = _account(32);
        address claimant = _account(33);
        vm.prank(claimant);
        juries.claim(task, 33, 0);
        _drawWith(0);
        for (uint256 slot; slot < 3; ++slot) {
            address juror = _account(FIRST + slot);
            vm.prank(juror);
            board.attest(task, FIRST + slot, 0, 0);
        }
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Submitted)
        );
        looks.closeMoot(task, 32);
        _reach(uint256(_audit().until) + 1);
        juries.close(task);
        uint256 had = _free(looker);
        vm.expectEmit();
        emit ILooks.Moot(task, 32);
        looks.closeMoot(task, 32);
        assertEq(_free(looker), had + GAME_COST);
        assertEq(looks.openAccusations(task), 0);
    }
}
