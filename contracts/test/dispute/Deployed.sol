// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IArbiter} from "../../src/interfaces/IArbiter.sol";
import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {ICommitments} from "../../src/interfaces/ICommitments.sol";
import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {GameId, SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Parameters} from "../../src/types/Parameters.sol";
import {Offer} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IMarket, IToken, IVault} from "../harness/Production.sol";
import {Rounds} from "../harness/Rounds.sol";
import {LeafTree} from "./LeafTree.sol";

/// @title The whole deployment with its accounts, and a task submitted with given checkpoints.
abstract contract Deployed is Rounds {
    uint128 internal constant UNIT = 1e18;
    uint128 internal constant BOND = 20 * UNIT;
    uint128 internal constant REWARD = 30 * UNIT;
    uint128 internal constant RETRAIN_REWARD = 50 * UNIT;
    uint128 internal constant RESTITUTION = 60 * UNIT;
    uint128 internal constant GAME_COST = 5 * UNIT;
    /// @dev Fee of an attested seat with one segment.
    uint128 internal constant SEAT_FEE = UNIT;
    uint128 internal constant STAKE = 1000 * UNIT;
    uint256 internal constant FUNDS = 1_000_000 * uint256(UNIT);
    uint32 internal constant CLOCK = 60;
    uint32 internal constant ALLOWANCE = 30;
    /// @dev The clock of each side of a game.
    uint32 internal constant TIME = CLOCK + ALLOWANCE;
    uint32 internal constant OPENING_PERIOD = 90;
    uint32 internal constant STALL_PERIOD = 2000;
    uint8 internal constant NO_SEAT = 255;
    uint32 internal constant STEPS = 4;
    SegmentIndex internal constant UNKNOWN = SegmentIndex.wrap(type(uint32).max);

    IVault internal vault;
    IMarket internal market;
    ICommitments internal commitments;
    IDisputeGame internal game;
    IAuditBoard internal board;
    IBeacon internal beacon;
    ILooks internal looks;
    IJuries internal juries;
    address internal submitter = makeAddr("submitter");
    address internal solver = makeAddr("solver");
    address internal challenger = makeAddr("challenger");
    address internal second = makeAddr("second challenger");
    address internal anyone = makeAddr("anyone");
    uint256 private _salts;

    function setUp() public virtual {
        vm.roll(100);
        vm.warp(1_000_000);
        IToken token = _newToken();
        vault = _newVault(token);
        IArbiter arbiter = _newArbiter();
        beacon = _newBeacon(_key(), 1_000_000, 3);
        beacon.show(1, _sign(1), _hints(1));
        market = _newMarket(vault, arbiter, beacon, address(this), _parameters());
        board = _newBoard(vault, market, beacon);
        commitments = _newCommitments(vault, market, board);
        game = _newGame(market, vault, arbiter, commitments);
        looks = _newLooks(vault, market, board);
        juries = _newJuries(vault, market, board);
        market.initialise(board, address(game), address(commitments), address(looks), address(juries));
        vault.initialise(
            address(market),
            address(board),
            address(game),
            address(commitments),
            address(looks),
            address(juries)
        );
        address[5] memory people = [submitter, solver, challenger, second, makeAddr("verifier")];
        for (uint256 k; k < people.length; ++k) {
            token.mint(people[k], FUNDS);
            vm.startPrank(people[k]);
            token.approve(address(vault), type(uint256).max);
            vault.deposit(FUNDS);
            vm.stopPrank();
        }
        vm.prank(people[4]);
        board.register(
            2, Offer(type(uint64).max, type(uint64).max, type(uint128).max, 0, 0, type(uint32).max)
        );
    }

    /// @dev Wei for each byte of an answer.
    function _dataFee() internal pure virtual returns (uint64) {
        return 0;
    }

    function _parameters() private pure returns (Parameters memory) {
        return Parameters({
            minPeriod: 10,
            maxPeriod: 30 days,
            minClock: 5,
            maxClock: 7 days,
            drawDelay: 4,
            stallPeriod: STALL_PERIOD,
            unbondingPeriod: 1 days,
            openingPeriod: OPENING_PERIOD,
            drawFee: UNIT,
            stakeUnit: 50 * UNIT,
            gameFloor: UNIT,
            dataFee: _dataFee(),
            capitalRate: 1000,
            minJurors: 3
        });
    }

    function _terms(bytes32 program, bytes32 constantsRoot, bytes32 initialState, uint32 segments)
        internal
        view
        virtual
        returns (Terms memory)
    {
        return Terms({
            programId: program,
            constantsRoot: constantsRoot,
            initialState: initialState,
            bundleHash: keccak256("bundle"),
            constants: 3,
            stateTensors: 2,
            segments: segments,
            segmentSteps: STEPS,
            stepOperations: 1e6,
            stateBytes: 1e5,
            budget: 100 * UNIT,
            stake: STAKE,
            restitution: RESTITUTION,
            reward: REWARD,
            auditFee: UNIT,
            gameCost: GAME_COST,
            delayPenalty: 40 * UNIT,
            biddingPeriod: 100,
            trainingPeriod: 1000,
            challengePeriod: 400,
            attestPeriod: 200,
            extension: 20,
            clock: CLOCK,
            replayAllowance: ALLOWANCE,
            verifiers: 1,
            segmentsPerVerifier: 1,
            arithmetic: 1,
            thinning: 1,
            moveTime: 50,
            lookChance: 0,
            jurors: 0,
            seatLock: 10 * UNIT,
            bond: BOND,
            retrainReward: RETRAIN_REWARD,
            bundle: "http://127.0.0.1:9000/bundle"
        });
    }

    // ------------------------------------------------------------------ a task

    /// @dev A task that is posted, won by the solver, submitted with these checkpoints r_0 ... r_K, and
    /// drawn.
    function _submitted(bytes32 program, bytes32 constantsRoot, bytes32[] memory checkpoints)
        internal
        returns (TaskId task)
    {
        Terms memory terms = _terms(program, constantsRoot, checkpoints[0], uint32(checkpoints.length - 1));
        vm.prank(submitter);
        task = market.post(terms);
        vm.prank(solver);
        market.bid(task, 50 * UNIT);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
        bytes32[] memory hashes = LeafTree.leaves(checkpoints);
        uint256 last = checkpoints.length - 1;
        bytes32 root = LeafTree.root(hashes);
        bytes32[] memory firstPath = LeafTree.path(hashes, 0);
        bytes32[] memory lastPath = LeafTree.path(hashes, last);
        vm.prank(solver);
        market.submit(task, root, firstPath, new bytes32[](0), checkpoints[last], lastPath);
        _draw(task);
    }

    function _draw(TaskId task) internal {
        uint64 round = board.firstDraw().round;
        vm.warp(beacon.timeOf(round));
        (bytes memory signature, MapHints[2] memory hints) = _round(round);
        vm.prank(makeAddr("drawer"));
        board.draw(task, signature, hints);
    }

    // ------------------------------------------------------------------ people

    /// @dev An account with exactly one bond, so that a lost bond shows.
    function _accuser(string memory name) internal returns (address who) {
        return _accuser(name, BOND);
    }

    function _accuser(string memory name, uint256 amount) internal returns (address who) {
        who = makeAddr(name);
        IToken token = IToken(vault.token());
        token.mint(who, amount);
        vm.startPrank(who);
        token.approve(address(vault), amount);
        vault.deposit(amount);
        vm.stopPrank();
    }

    // ------------------------------------------------------------------ commitments

    /// @dev Commits and lets a block pass.
    function _commit(TaskId task, SegmentIndex segment, address who) internal returns (bytes32 salt) {
        salt = bytes32(++_salts);
        bytes32 commitment = _commitment(task, segment, who, salt);
        vm.prank(who);
        commitments.commit(task, NO_SEAT, commitment);
        vm.roll(vm.getBlockNumber() + 1);
    }

    function _commitment(TaskId task, SegmentIndex segment, address who, bytes32 salt)
        internal
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(block.chainid, address(commitments), task, segment, who, salt));
    }

    // ------------------------------------------------------------------ openings

    function _leaf(bytes32[] memory values, uint256 index) internal pure returns (Leaf memory) {
        return Leaf(values[index], LeafTree.path(LeafTree.leaves(values), index));
    }

    function _beside(bytes32[] memory values, uint256 anchor, uint256 index)
        internal
        pure
        returns (Leaf memory)
    {
        return Leaf(values[index], LeafTree.beside(LeafTree.leaves(values), anchor, index));
    }

    function _head(GameId id) internal view returns (bytes32) {
        return game.gameOf(id).head;
    }

    function _free(address who) internal view returns (uint256) {
        return vault.free(who);
    }
}
