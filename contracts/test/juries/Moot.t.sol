// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Digesting} from "../looks/Digesting.sol";

/// @title An accusation, or a game that asks for a step tree, that is open when a jury ends the task: the
/// look's account loses no more than it would have lost otherwise.
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
        _denied();
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Submitted)
        );
        looks.closeMoot(task, 32);
        _withhold();
        uint256 had = _free(looker);
        vm.expectEmit();
        emit ILooks.Moot(task, 32);
        looks.closeMoot(task, 32);
        assertEq(_free(looker), had + GAME_COST);
        assertEq(looks.openAccusations(task), 0);
    }

    /// @dev The look asked for the step tree before the verdict and gets it after the verdict. Nobody can be
    /// accused any more, and an honest tree convicts nobody, so the look drops its game for a game's cost.
    function test_drop_withheld_succeeds() public {
        GameId id = _asksAndIsWithheld();
        address looker = _account(32);
        vm.expectRevert(Refusals.NotYourTurn.selector);
        vm.prank(looker);
        looks.drop(task, 32, id);
        _expand(_segmentOf(32));
        Charge memory charge = _chargeOf(32, id, Spot(2, 0, 1));
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Unpaid)
        );
        _accuseWith(32, charge);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, looker, anyone));
        vm.prank(anyone);
        looks.drop(task, 32, id);
        uint256[3] memory had = [_free(looker), _free(solver), vault.burned()];
        vm.prank(looker);
        looks.drop(task, 32, id);
        _assertVerdict(id, IDisputeGame.Verdict.Dropped);
        assertEq(_free(looker), had[0] + BOND - GAME_COST);
        assertEq(_free(solver), had[1] + GAME_COST);
        assertEq(market.taskOf(task).openGames, 0);
        assertEq(vault.burned(), had[2]);
    }

    /// @dev Each look drops one game. Otherwise a solver whose accomplice has a look could put any number of
    /// games before a retrainer's, at no loss: bonds do not double in an unpaid task.
    function test_drop_again_reverts() public {
        GameId id = _asksAndIsWithheld();
        _expand(_segmentOf(32));
        address looker = _account(32);
        vm.prank(looker);
        looks.drop(task, 32, id);
        assertTrue(looks.lookOf(task, 32).dropped);
        GameId again = _challengeBy(looker, _segmentOf(32));
        vm.expectRevert(abi.encodeWithSelector(Refusals.LimitReached.selector, 1, 1));
        vm.prank(looker);
        looks.drop(task, 32, again);
    }

    /// @dev The tree that the solver posts after the verdict is false: the look's game continues against it.
    function test_drop_falseTree_isConvicted_succeeds() public {
        GameId id = _asksAndIsWithheld();
        forged = _numberOf(_segmentOf(32), 2);
        _expand(_segmentOf(32));
        _selectStep(id, 32, 2);
        _timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.SolverSilent);
        address looker = _account(32);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        vm.prank(looker);
        looks.drop(task, 32, id);
    }

    // ------------------------------------------------------------------ inside

    /// @dev Look 33 claims, and all jurors say no.
    function _denied() private {
        address claimant = _account(33);
        vm.prank(claimant);
        juries.claim(task, 33, 0);
        _drawWith(0);
        for (uint256 slot; slot < 3; ++slot) {
            address juror = _account(FIRST + slot);
            vm.prank(juror);
            board.attest(task, FIRST + slot, 0, 0);
        }
    }

    function _withhold() private {
        _reach(uint256(_audit().until) + 1);
        juries.close(task);
        assertEq(uint8(market.statusOf(task)), uint8(ITaskMarket.Status.Unpaid));
    }

    /// @dev Look 32, which has attested, asks for the step tree; the solver has not posted it when the jury
    /// ends the task.
    function _asksAndIsWithheld() private returns (GameId id) {
        _looked(3);
        _reveal(32);
        _attest(32);
        _denied();
        _reach(_audit().until);
        id = _challengeBy(_account(32), _segmentOf(32));
        _withhold();
    }
}
