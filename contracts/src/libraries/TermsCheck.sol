// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Parameters} from "../types/Parameters.sol";
import {Terms} from "../types/Terms.sol";
import {Fees} from "./Fees.sol";
import {Pool} from "./Pool.sol";
import {Refusals} from "./Refusals.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Bounds on every number of a task's terms: dispute.md section 2, "post".
/// @notice Figures that a client can recompute from the bundle (operations, bytes) are only bounded here;
/// bidders check their values.
library TermsCheck {
    /// @notice K: segments after the initial state.
    uint256 internal constant MAX_SEGMENTS = 1 << 20;
    /// @notice C: steps of a segment.
    uint256 internal constant MAX_SEGMENT_STEPS = 1 << 16;
    /// @notice w: a digest hashes about one chunk in w of each state.
    uint256 internal constant MAX_THINNING = 64;
    /// @notice Tensors of a state, leaves of the constants tree.
    uint256 internal constant MAX_TENSORS = 65_535;
    /// @notice V: bounds every loop over seats.
    uint256 internal constant MAX_SEATS = 32;
    /// @notice q: segments of a seat.
    uint256 internal constant MAX_SEAT_SEGMENTS = 64;
    /// @notice V q of a task with looks: each segment of a seat takes one bit.
    uint256 internal constant MAX_LOOKS = 32;
    /// @notice Maximum amount of one lock of the vault.
    uint256 internal constant MAX_LOCK = (1 << 94) - 1;
    /// @notice J: accounts of a jury.
    uint256 internal constant MAX_JURORS = 32;
    /// @notice If a jury finds that data are withheld, 1 / JURY_SHARE of the stake is taken.
    uint256 internal constant JURY_SHARE = 16;
    /// @notice The highest level of a registration.
    uint256 internal constant MAX_LEVEL = Pool.LEVELS - 1;
    /// @notice A rate of 100 %, in hundredths of a percent, and the period that rates refer to.
    uint256 internal constant RATE_OF_ALL = 10_000;
    uint256 internal constant YEAR = 365 days;
    /// @notice Bytes per second, 4 MiB, that a seat's connection must carry: states are small enough that a
    /// seat can fetch those that it needs in time at this rate.
    uint256 internal constant LINE = 1 << 22;
    /// @notice Longest address of a bundle, in bytes.
    uint256 internal constant MAX_BUNDLE_LENGTH = 1_024;

    /// @notice Reverts with the first field that breaks its bounds.
    /// @param arithmetic The version that the deployment's Arbiter implements.
    function check(Terms calldata terms, Parameters memory parameters, uint16 arithmetic) internal pure {
        _checkProgram(terms, arithmetic);
        _checkTimes(terms, parameters);
        _checkSeats(terms, parameters);
        _checkAmounts(terms, parameters);
        _within("bundle length", bytes(terms.bundle).length, 1, MAX_BUNDLE_LENGTH);
    }

    /// @notice Reverts if a deployment's parameters leave no valid terms, or if they allow draws whose round
    /// may already be known, stakes that can leave before a stalled task ends, commitments that nobody has
    /// the time to open, challenges that cost nothing, or amounts that no lock holds.
    function checkParameters(Parameters memory parameters) internal pure {
        uint256 clock = parameters.minClock;
        _within("minClock", clock, 1, type(uint32).max);
        _within("maxClock", parameters.maxClock, clock, type(uint32).max);
        _within("minPeriod", parameters.minPeriod, 1, type(uint32).max - 1);
        _within("maxPeriod", parameters.maxPeriod, parameters.minPeriod + 2 * clock, type(uint32).max);
        _within("openingPeriod", parameters.openingPeriod, clock, type(uint32).max);
        _within("drawDelay", parameters.drawDelay, 1, type(uint32).max);
        uint256 shortest = Fees.ESCROW_DRAWS * (uint256(parameters.minPeriod) + parameters.drawDelay);
        _within("stallPeriod", parameters.stallPeriod, shortest, type(uint32).max);
        uint256 least = uint256(parameters.drawDelay) + parameters.stallPeriod;
        _within("unbondingPeriod", parameters.unbondingPeriod, least, type(uint32).max);
        _within("stakeUnit", parameters.stakeUnit, 1, MAX_LOCK >> MAX_LEVEL);
        // At most a unit, so any registration covers the draw fee.
        _within("drawFee", parameters.drawFee, 0, parameters.stakeUnit);
        // A bond is at most a quarter of the stake. With the shortest clock, a quarter of the greatest stake
        // has room for the least bond: twice the least cost of a game takes at most an eighth of that
        // quarter, and the cost of capital (stake x capitalRate x 4 clocks / year) at most half of it.
        _within("gameFloor", parameters.gameFloor, 1, MAX_LOCK >> 6);
        _within(
            "capitalRate", parameters.capitalRate, 0, Math.min(RATE_OF_ALL, RATE_OF_ALL * YEAR / (32 * clock))
        );
        _within("minJurors", parameters.minJurors, 1, MAX_JURORS);
    }

    function _checkProgram(Terms calldata terms, uint16 arithmetic) private pure {
        _set("programId", terms.programId);
        _set("constantsRoot", terms.constantsRoot);
        _set("initialState", terms.initialState);
        _set("bundleHash", terms.bundleHash);
        _within("constants", terms.constants, 1, MAX_TENSORS);
        _within("stateTensors", terms.stateTensors, 1, MAX_TENSORS);
        _within("segments", terms.segments, 1, MAX_SEGMENTS);
        _within("segmentSteps", terms.segmentSteps, 1, MAX_SEGMENT_STEPS);
        _within("stepOperations", terms.stepOperations, 1, type(uint64).max);
        _within("arithmetic", terms.arithmetic, arithmetic, arithmetic);
        uint256 thinning = terms.thinning;
        _within("thinning", thinning, 1, Math.min(MAX_THINNING, terms.segmentSteps));
        if (thinning & thinning - 1 != 0) revert Refusals.NoPowerOfTwo("thinning", thinning);
    }

    function _checkAmounts(Terms calldata terms, Parameters memory parameters) private pure {
        _within("budget", terms.budget, 1, type(uint128).max);
        _within("restitution", terms.restitution, 0, terms.budget);
        _within("gameCost", terms.gameCost, parameters.gameFloor, MAX_LOCK);
        // At least a quarter of the stake S, rounded up, burns, whatever a conviction pays: owed <= S -
        // ceil(S / 4). This is equivalent to S >= ceil(4 owed / 3).
        uint256 seats =
            terms.verifiers * (terms.gameCost + Fees.ofSeat(terms.auditFee, terms.segmentsPerVerifier));
        if (terms.lookChance != 0) {
            seats += uint256(terms.verifiers) * terms.segmentsPerVerifier
            * (uint256(terms.gameCost) + terms.auditFee);
        }
        uint256 owed = Math.max(terms.reward, terms.retrainReward) + seats + terms.restitution;
        _within("stake", terms.stake, (4 * owed + 2) / 3, MAX_LOCK);
        _within("delayPenalty", terms.delayPenalty, 0, terms.stake);
        _within("reward", terms.reward, 0, terms.stake / 8);
        _within("retrainReward", terms.retrainReward, 0, terms.stake / 8);
        if (terms.jurors != 0) {
            _within("jurors", terms.jurors, parameters.minJurors, MAX_JURORS);
            // A withheld verdict pays the claimant back out of the stake.
            uint256 paid = uint256(terms.auditFee) + parameters.drawFee;
            _within("stake", terms.stake, JURY_SHARE * paid, MAX_LOCK);
        }
        _within("bond", terms.bond, leastBond(terms, parameters.capitalRate), terms.stake / 4);
    }

    /// @notice The least bond: twice what a groundless game costs the solver, because the solver gets half
    /// of a lost bond. The game costs the solver its gas and replays, and the cost of capital for its stake
    /// while the game lasts.
    /// @param capitalRate Per year, in hundredths of a percent.
    function leastBond(Terms calldata terms, uint256 capitalRate) internal pure returns (uint256) {
        // A game lasts at most the clocks of both sides together.
        uint256 longest = 2 * (uint256(terms.clock) + terms.replayAllowance);
        return 2 * (terms.gameCost + Math.ceilDiv(terms.stake * capitalRate * longest, RATE_OF_ALL * YEAR));
    }

    function _checkSeats(Terms calldata terms, Parameters memory parameters) private pure {
        _within("verifiers", terms.verifiers, 1, MAX_SEATS);
        _within(
            "segmentsPerVerifier", terms.segmentsPerVerifier, 1, Math.min(MAX_SEAT_SEGMENTS, terms.segments)
        );
        // In attestPeriod a seat fetches a state for each segment, and two more for a game. In moveTime an
        // answer or an opening may need two.
        uint256 most = LINE * terms.attestPeriod / (uint256(terms.segmentsPerVerifier) + 2);
        _within("stateBytes", terms.stateBytes, 1, Math.min(most, LINE * terms.moveTime / 2));
        // At least what a silent account loses. Half of the lock must also pay for a draw after an informer
        // took the other half. At most the stake of the highest level.
        uint256 fee = parameters.drawFee;
        uint256 least = Math.max(Fees.ofSeat(terms.auditFee, terms.segmentsPerVerifier) + fee, 2 * fee);
        uint256 lookChance = terms.lookChance;
        if (lookChance != 0) {
            _within("lookChance", lookChance, 1, RATE_OF_ALL);
            _within(
                "verifiers x segmentsPerVerifier",
                uint256(terms.verifiers) * terms.segmentsPerVerifier,
                1,
                MAX_LOOKS
            );
            // Half of the lock pays a looker for the game that obtains the solver's step tree, and for the
            // bond of an accusation.
            least = Math.max(least, 4 * uint256(terms.gameCost));
        }
        _within("seatLock", terms.seatLock, least, uint256(parameters.stakeUnit) << MAX_LEVEL);
    }

    function _checkTimes(Terms calldata terms, Parameters memory parameters) private pure {
        (uint256 least, uint256 most) = (parameters.minPeriod, parameters.maxPeriod);
        _within("biddingPeriod", terms.biddingPeriod, least, most);
        // Others must have time to see and answer a late bid, as they must have time to see a task.
        _within("extension", terms.extension, least, terms.biddingPeriod);
        _within("trainingPeriod", terms.trainingPeriod, least, most);
        // Otherwise a single silent seat could make the task stall: the stall period must have room for as
        // many draws as the escrow pays for, each with its delay.
        uint256 longest = parameters.stallPeriod / Fees.ESCROW_DRAWS - parameters.drawDelay;
        _within("attestPeriod", terms.attestPeriod, least, Math.min(most, longest));
        // A look compares its result with what is revealed, so the reveal must come within the attestation
        // period.
        _within("moveTime", terms.moveTime, least, terms.attestPeriod);
        // A verifier that finds a difference at the end of the attestation period can still challenge: it
        // commits, and opens the commitment in a later block. Each takes at most the shortest clock.
        least = terms.attestPeriod + 2 * uint256(parameters.minClock);
        _within("challengePeriod", terms.challengePeriod, least, most);
        _within("clock", terms.clock, parameters.minClock, parameters.maxClock);
        _within("replayAllowance", terms.replayAllowance, 0, parameters.maxPeriod);
    }

    function _within(string memory field, uint256 value, uint256 least, uint256 most) private pure {
        if (value < least || value > most) revert Refusals.OutOfBounds(field, least, most, value);
    }

    function _set(string memory field, bytes32 value) private pure {
        if (value == 0) revert Refusals.Zero(field);
    }
}
