// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {ICommitments} from "../../src/interfaces/ICommitments.sol";
import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {Digests} from "../../src/libraries/Digests.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Parameters} from "../../src/types/Parameters.sol";
import {Offer, Seat} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IMarket, IToken, IVault} from "../harness/Production.sol";
import {Rounds} from "../harness/Rounds.sol";
import {Trees} from "./Trees.sol";

/// @title The market's deployment with its accounts, and helpers that bring a task to each status.
/// @notice Game and commitments are accounts without functions; the tests call the market in their names.
abstract contract Deployment is Rounds {
    uint128 internal constant UNIT = 1e18;
    uint128 internal constant BUDGET = 100 * UNIT;
    uint128 internal constant STAKE = 1000 * UNIT;
    uint128 internal constant REWARD = 30 * UNIT;
    uint128 internal constant RETRAIN_REWARD = 50 * UNIT;
    uint128 internal constant GAME_COST = 5 * UNIT;
    uint128 internal constant FEE = 2 * UNIT;
    uint128 internal constant DRAW_FEE = UNIT;
    uint32 internal constant SEGMENTS = 5;
    uint32 internal constant DRAW_DELAY = 40;
    uint256 internal constant FUNDS = 1_000_000 * uint256(UNIT);
    uint32 internal constant STALL_PERIOD = 2000;
    uint32 internal constant UNBONDING_PERIOD = 1 days;
    /// @dev Fee of a seat: it has two segments.
    uint256 internal constant SEAT_FEE = 2 * uint256(FEE);
    uint256 internal constant STAKE_UNIT = 50 * uint256(UNIT);
    /// @dev Amount that a registration of the set-up locks: it has level 1.
    uint256 internal constant SEAT_STAKE = 2 * STAKE_UNIT;
    uint256 internal constant VERIFIERS = 6;
    bytes32 internal constant DIGEST = keccak256("digest");
    uint64 internal constant START = 1_000_000;
    uint64 internal constant PERIOD = 3;

    IToken internal token;
    IVault internal vault;
    IMarket internal market;
    IAuditBoard internal board;
    IBeacon internal beacon;
    ILooks internal looks;
    IJuries internal juries;
    address internal game = makeAddr("game");
    address internal commitments = makeAddr("commitments");
    address internal pauser = makeAddr("pauser");
    address internal submitter = makeAddr("submitter");
    address internal solver = makeAddr("solver");
    address internal rival = makeAddr("rival");
    address internal challenger = makeAddr("challenger");
    address internal drawer = makeAddr("drawer");
    address[] internal verifiers;
    /// @dev r_0 ... r_K.
    bytes32[] internal states;
    /// @dev A lower bound on the time of the last round that the beacon was shown.
    uint256 private _shownAt;

    function setUp() public virtual {
        vm.roll(100);
        vm.warp(START);
        token = _newToken();
        vault = _newVault(token);
        beacon = _newBeacon(_key(), START, PERIOD);
        _show();
        market = _newMarket(vault, _newArbiter(), beacon, pauser, _parameters());
        board = _newBoard(vault, market, beacon);
        looks = _newLooks(vault, market, board);
        juries = _newJuries(vault, market, board);
        vm.etch(game, hex"00");
        vm.etch(commitments, hex"00");
        market.initialise(board, game, commitments, address(looks), address(juries));
        vault.initialise(address(market), address(board), game, commitments, address(looks), address(juries));
        _fund(submitter);
        _fund(solver);
        _fund(rival);
        for (uint256 i; i < VERIFIERS; ++i) {
            verifiers.push(_registered(string.concat("verifier ", vm.toString(i)), 1));
        }
        for (uint256 i; i <= SEGMENTS; ++i) {
            states.push(keccak256(abi.encode("state", i)));
        }
    }

    function _parameters() internal pure virtual returns (Parameters memory) {
        return Parameters({
            minPeriod: 10,
            maxPeriod: 30 days,
            minClock: 5,
            maxClock: 7 days,
            drawDelay: DRAW_DELAY,
            stallPeriod: STALL_PERIOD,
            unbondingPeriod: UNBONDING_PERIOD,
            openingPeriod: 60,
            drawFee: DRAW_FEE,
            stakeUnit: uint128(STAKE_UNIT),
            gameFloor: UNIT,
            dataFee: 0,
            capitalRate: 1000,
            minJurors: 3
        });
    }

    function _terms() internal view returns (Terms memory) {
        return Terms({
            programId: keccak256("program"),
            constantsRoot: keccak256("constants"),
            initialState: states[0],
            bundleHash: keccak256("bundle"),
            constants: 4,
            stateTensors: 9,
            segments: SEGMENTS,
            segmentSteps: 20,
            stepOperations: 1e6,
            stateBytes: 1e5,
            budget: BUDGET,
            stake: STAKE,
            restitution: 60 * UNIT,
            reward: REWARD,
            auditFee: FEE,
            gameCost: GAME_COST,
            delayPenalty: 40 * UNIT,
            biddingPeriod: 100,
            trainingPeriod: 1000,
            challengePeriod: 400,
            attestPeriod: 200,
            extension: 20,
            clock: 60,
            replayAllowance: 30,
            verifiers: 3,
            segmentsPerVerifier: 2,
            arithmetic: 1,
            thinning: 4,
            moveTime: 50,
            lookChance: 0,
            jurors: 0,
            seatLock: 40 * UNIT,
            bond: 20 * UNIT,
            retrainReward: RETRAIN_REWARD,
            bundle: "http://127.0.0.1:9000/bundle"
        });
    }

    function _fund(address account) internal {
        token.mint(account, FUNDS);
        vm.startPrank(account);
        token.approve(address(vault), type(uint256).max);
        vault.deposit(FUNDS);
        vm.stopPrank();
    }

    /// @dev A new account with this level and an offer that accepts the terms.
    function _registered(string memory name, uint8 level) internal returns (address account) {
        account = makeAddr(name);
        _fund(account);
        vm.prank(account);
        board.register(level, _offer());
    }

    function _offer() internal pure returns (Offer memory) {
        return Offer({
            speed: 1e9, stateBytes: 1e6, lock: 100 * UNIT, fee: 50e18, seatFee: 0, period: type(uint32).max
        });
    }

    // ------------------------------------------------------------------ a task's way

    function _post() internal returns (TaskId task) {
        return _post(_terms());
    }

    function _post(Terms memory terms) internal returns (TaskId task) {
        if (_shownAt + 1 days < vm.getBlockTimestamp()) _show();
        vm.prank(submitter);
        return market.post(terms);
    }

    function _assigned(uint128 price) internal returns (TaskId task) {
        return _assigned(_terms(), price);
    }

    function _assigned(Terms memory terms, uint128 price) internal returns (TaskId task) {
        task = _post(terms);
        vm.prank(solver);
        market.bid(task, price);
        vm.warp(market.taskOf(task).bidsUntil + 1);
        market.assign(task);
    }

    /// @dev Trees are hashed before the caller is set: a call of the SHA-256 precompile would consume the
    /// prank.
    function _progress(TaskId task, uint32 size) internal {
        uint32 before = market.taskOf(task).size;
        bytes32[] memory none;
        bytes32 root = _root(size);
        bytes32[] memory proof =
            before == 0 ? Trees.path(states, 0, size) : Trees.consistency(states, before, size);
        vm.prank(solver);
        if (before == 0) market.progress(task, root, size, proof, none);
        else market.progress(task, root, size, none, proof);
    }

    function _submit(TaskId task) internal {
        uint32 size = SEGMENTS + 1;
        uint32 before = market.taskOf(task).size;
        bytes32[] memory none;
        bytes32 root = _root(size);
        bytes32[] memory proof =
            before == 0 ? Trees.path(states, 0, size) : Trees.consistency(states, before, size);
        bytes32[] memory last = Trees.path(states, SEGMENTS, size);
        bytes32 result = states[SEGMENTS];
        vm.prank(solver);
        if (before == 0) market.submit(task, root, proof, none, result, last);
        else market.submit(task, root, none, proof, result, last);
    }

    function _submitted(uint128 price) internal returns (TaskId task) {
        return _submitted(_terms(), price);
    }

    function _submitted(Terms memory terms, uint128 price) internal returns (TaskId task) {
        task = _assigned(terms, price);
        _submit(task);
    }

    function _drawn(uint128 price) internal returns (TaskId task) {
        return _drawn(_terms(), price);
    }

    function _drawn(Terms memory terms, uint128 price) internal returns (TaskId task) {
        task = _submitted(terms, price);
        _draw(task);
    }

    function _audited(uint128 price) internal returns (TaskId task) {
        task = _drawn(price);
        _attestAll(task);
        _endWindow(task);
    }

    /// @dev Executes the first draw of the queue, which must be the task's, once its round is published.
    /// Signatures and hints are computed before the caller is set.
    function _draw(TaskId task) internal {
        uint64 round = board.firstDraw().round;
        _reach(uint64(beacon.timeOf(round)));
        (bytes memory signature, MapHints[2] memory hints) = _round(round);
        vm.prank(drawer);
        board.draw(task, signature, hints);
    }

    function _attestAll(TaskId task) internal {
        uint256 count = board.seatsOf(task).length;
        for (uint256 i; i < count; ++i) {
            _attest(task, i);
        }
    }

    function _attest(TaskId task, uint256 seat) internal virtual {
        address account = board.seatOf(task, seat).account;
        vm.prank(account);
        board.attest(task, seat, DIGEST, Digests.saltHash(_salt(account)));
    }

    /// @dev The test's own salts: the board accepts any word with the right hash as a salt.
    function _salt(address account) internal pure returns (bytes32) {
        return keccak256(abi.encode("salt", account));
    }

    /// @dev The informer reveals the salt of the account in the seat, one block after committing to it.
    function _inform(TaskId task, uint256 seat, address informer) internal {
        bytes32 salt = _salt(board.seatOf(task, seat).account);
        bytes32 commitment = keccak256(abi.encode(block.chainid, address(looks), task, seat, informer, salt));
        vm.prank(informer);
        looks.commitInforming(commitment);
        vm.roll(vm.getBlockNumber() + 1);
        vm.prank(informer);
        looks.inform(task, seat, DIGEST, salt);
    }

    /// @dev Lets the attestation period of the last draw pass.
    function _silence(TaskId task) internal {
        _reach(uint64(board.auditOf(task).until) + 1);
    }

    function _endWindow(TaskId task) internal {
        _reach(market.taskOf(task).challengeUntil + 1);
    }

    /// @dev A game on the task, won by the challenger.
    function _convict(TaskId task) internal {
        vm.startPrank(game);
        market.gameOpened(task);
        market.convict(task, challenger);
        vm.stopPrank();
    }

    /// @dev Burns the rest of the stake, as if the time for claims were over.
    function _burnRest(TaskId task) internal {
        _mockClaims(task, uint64(vm.getBlockTimestamp()) - 1);
        market.burnRest(task);
    }

    function _mockClaims(TaskId task, uint64 until) internal {
        vm.mockCall(commitments, abi.encodeCall(ICommitments.claimsUntil, (task)), abi.encode(until));
    }

    function _reach(uint64 time) internal virtual {
        if (vm.getBlockTimestamp() < time) vm.warp(time);
    }

    /// @dev Shows the beacon the latest round.
    function _show() internal {
        _shownAt = vm.getBlockTimestamp() - PERIOD;
        uint64 round = beacon.roundAt(uint64(vm.getBlockTimestamp()));
        (bytes memory signature, MapHints[2] memory hints) = _round(round);
        beacon.show(round, signature, hints);
    }

    // ------------------------------------------------------------------ values

    function _root(uint32 size) internal view returns (bytes32) {
        return Trees.root(states, size);
    }

    /// @dev The word of a round.
    function _word(uint64 round) internal view returns (bytes32) {
        return sha256(_sign(round));
    }

    function _accounts(TaskId task) internal view returns (address[] memory accounts) {
        Seat[] memory seats = board.seatsOf(task);
        accounts = new address[](seats.length);
        for (uint256 i; i < seats.length; ++i) {
            accounts[i] = seats[i].account;
        }
    }

    function _escrowOf(Terms memory terms) internal pure returns (uint256) {
        uint256 fees = uint256(terms.verifiers) * terms.segmentsPerVerifier * terms.auditFee;
        if (terms.lookChance == 0) return terms.budget + fees + 8 * uint256(DRAW_FEE);
        return terms.budget + 2 * fees + 12 * uint256(DRAW_FEE);
    }

    function _remaining(uint256 lock) internal view returns (uint256 remaining) {
        (,, remaining) = vault.lockOf(lock);
    }

    function _expectBounds(string memory field, uint256 value, uint256 least, uint256 most) internal {
        vm.expectRevert(abi.encodeWithSelector(Refusals.OutOfBounds.selector, field, least, most, value));
    }
}
