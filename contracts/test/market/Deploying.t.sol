// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IArbiter} from "../../src/interfaces/IArbiter.sol";
import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Parameters} from "../../src/types/Parameters.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IMarket} from "../harness/Production.sol";
import {Deployment} from "./Deployment.sol";

/// @title Deploying a market: who may initialise it, and which parameters it accepts.
contract DeployingTest is Deployment {
    /// @dev Most that one lock of the vault holds.
    uint128 private constant MAX_LOCK = (1 << 94) - 1;

    function test_initialise_again_reverts() public {
        vm.expectRevert(Refusals.AlreadyInitialised.selector);
        market.initialise(board, game, commitments, address(looks), address(juries));
    }

    function test_initialise_byStranger_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(this), solver));
        vm.prank(solver);
        market.initialise(board, game, commitments, address(looks), address(juries));
    }

    function test_initialise_withoutCode_reverts() public {
        IMarket other = _newMarket(vault, _newArbiter(), beacon, pauser, _parameters());
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, solver));
        other.initialise(board, solver, commitments, address(looks), address(juries));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, solver));
        other.initialise(board, game, solver, address(looks), address(juries));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, solver));
        other.initialise(IAuditBoard(solver), game, commitments, address(looks), address(juries));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, solver));
        other.initialise(board, game, commitments, solver, address(juries));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, solver));
        other.initialise(board, game, commitments, address(looks), solver);
    }

    function test_constructor_roundOfNow_reverts() public {
        Parameters memory parameters = _parameters();
        parameters.drawDelay = 0;
        IArbiter arbiter = _newArbiter();
        _expectBounds("drawDelay", 0, 1, type(uint32).max);
        _newMarket(vault, arbiter, beacon, pauser, parameters);
    }

    function test_constructor_timesOutOfBounds_reverts() public {
        Parameters memory parameters = _parameters();
        parameters.minClock = 0;
        _expectNoMarket("minClock", 0, 1, type(uint32).max, parameters);
        parameters = _parameters();
        parameters.maxClock = 4;
        _expectNoMarket("maxClock", 4, 5, type(uint32).max, parameters);
        parameters = _parameters();
        parameters.minPeriod = 0;
        _expectNoMarket("minPeriod", 0, 1, type(uint32).max - 1, parameters);
        parameters = _parameters();
        // The shortest challenge period: the shortest attestation period and two clocks.
        parameters.maxPeriod = 19;
        _expectNoMarket("maxPeriod", 19, 20, type(uint32).max, parameters);
        parameters = _parameters();
        parameters.openingPeriod = 4;
        _expectNoMarket("openingPeriod", 4, 5, type(uint32).max, parameters);
    }

    /// @dev A stake must not leave before the tasks for which it is drawn can be ended.
    function test_constructor_auditTimesOutOfBounds_reverts() public {
        Parameters memory parameters = _parameters();
        // Eight draws, each with the delay of 40 and the shortest attestation period.
        parameters.stallPeriod = 399;
        _expectNoMarket("stallPeriod", 399, 400, type(uint32).max, parameters);
        parameters = _parameters();
        uint32 least = DRAW_DELAY + STALL_PERIOD;
        parameters.unbondingPeriod = least - 1;
        _expectNoMarket("unbondingPeriod", least - 1, least, type(uint32).max, parameters);
        parameters.unbondingPeriod = least;
        _newMarket(vault, _newArbiter(), beacon, pauser, parameters);
    }

    function test_constructor_amountsOutOfBounds_reverts() public {
        Parameters memory parameters = _parameters();
        parameters.drawFee = parameters.stakeUnit + 1;
        _expectNoMarket("drawFee", parameters.drawFee, 0, parameters.stakeUnit, parameters);
        parameters = _parameters();
        // The highest level has 2^15 units.
        uint128 most = MAX_LOCK >> 15;
        parameters.stakeUnit = most + 1;
        _expectNoMarket("stakeUnit", most + 1, 1, most, parameters);
        parameters.stakeUnit = 0;
        _expectNoMarket("stakeUnit", 0, 1, most, parameters);
        parameters = _parameters();
        most = MAX_LOCK / 64;
        parameters.gameFloor = 0;
        _expectNoMarket("gameFloor", 0, 1, most, parameters);
        parameters.gameFloor = most + 1;
        _expectNoMarket("gameFloor", most + 1, 1, most, parameters);
        parameters.gameFloor = most;
        _newMarket(vault, _newArbiter(), beacon, pauser, parameters);
        parameters.gameFloor = 1;
        _newMarket(vault, _newArbiter(), beacon, pauser, parameters);
    }

    function test_constructor_capitalRateOutOfBounds_reverts() public {
        Parameters memory parameters = _parameters();
        parameters.capitalRate = 10_001;
        _expectNoMarket("capitalRate", 10_001, 0, 10_000, parameters);
        parameters.capitalRate = 10_000;
        _newMarket(vault, _newArbiter(), beacon, pauser, parameters);
        parameters.capitalRate = 0;
        _newMarket(vault, _newArbiter(), beacon, pauser, parameters);
        // The longer the minimum clock, the lower the rate at which the greatest stake still covers a bond.
        (parameters.minClock, parameters.maxClock) = (20 days, 30 days);
        (parameters.maxPeriod, parameters.openingPeriod) = (50 days, 20 days);
        uint32 most = uint32(10_000 * uint256(365 days) / (32 * 20 days));
        parameters.capitalRate = most + 1;
        _expectNoMarket("capitalRate", most + 1, 0, most, parameters);
        parameters.capitalRate = most;
        _newMarket(vault, _newArbiter(), beacon, pauser, parameters);
    }

    function test_constructor_minJurorsOutOfBounds_reverts() public {
        Parameters memory parameters = _parameters();
        parameters.minJurors = 0;
        _expectNoMarket("minJurors", 0, 1, 32, parameters);
        parameters.minJurors = 33;
        _expectNoMarket("minJurors", 33, 1, 32, parameters);
        parameters.minJurors = 32;
        _newMarket(vault, _newArbiter(), beacon, pauser, parameters);
        parameters.minJurors = 1;
        _newMarket(vault, _newArbiter(), beacon, pauser, parameters);
    }

    /// @dev Even with the greatest parameters there are terms whose stake a lock can hold.
    function test_post_greatestParameters_succeeds() public {
        Parameters memory parameters = _parameters();
        parameters.gameFloor = MAX_LOCK / 64;
        (parameters.minClock, parameters.maxClock) = (20 days, 30 days);
        (parameters.maxPeriod, parameters.openingPeriod) = (50 days, 20 days);
        parameters.capitalRate = uint32(10_000 * uint256(365 days) / (32 * 20 days));
        market = _newMarket(vault, _newArbiter(), beacon, pauser, parameters);
        Terms memory terms = _terms();
        (terms.verifiers, terms.clock, terms.replayAllowance) = (1, 20 days, 0);
        terms.challengePeriod = 41 days;
        (terms.stake, terms.bond, terms.gameCost) = (MAX_LOCK, MAX_LOCK / 4, MAX_LOCK / 64);
        market.initialise(board, game, commitments, address(looks), address(juries));
        // The terms are valid; the vault does not know this market.
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotModule.selector, address(market)));
        market.post(terms);
        terms.bond = MAX_LOCK / 4 + 1;
        vm.expectPartialRevert(Refusals.OutOfBounds.selector);
        market.post(terms);
    }

    function _expectNoMarket(
        string memory field,
        uint256 value,
        uint256 least,
        uint256 most,
        Parameters memory parameters
    ) private {
        IArbiter arbiter = _newArbiter();
        _expectBounds(field, value, least, most);
        _newMarket(vault, arbiter, beacon, pauser, parameters);
    }
}
