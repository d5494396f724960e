// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {Errors} from "../../src/libraries/Errors.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Parameters} from "../../src/types/Parameters.sol";
import {Terms} from "../../src/types/Terms.sol";
import {IMarket, IToken, IVault, Production} from "../harness/Production.sol";
import {Trees} from "./Trees.sol";

/// @title The market's deployment with its people, and a task's way up to each status.
/// @notice The game is an account of the test: what the market does for a game is called by hand here.
abstract contract Deployment is Production {
    uint128 internal constant UNIT = 1e18;
    uint128 internal constant BUDGET = 100 * UNIT;
    uint128 internal constant STAKE = 1000 * UNIT;
    uint128 internal constant FEE = 2 * UNIT;
    uint128 internal constant DRAW_FEE = UNIT;
    uint32 internal constant SEGMENTS = 5;
    uint32 internal constant DRAW_DELAY = 40;
    uint256 internal constant FUNDS = 1_000_000 * uint256(UNIT);

    /// @dev RLP of block 2 of an anvil 1.7.1 chain (Prague) and its hash; its mixHash begins at byte 463.
    bytes internal constant HEADER =
        hex"f9025fa0278ef21516963986664bc0adf7ea4621b7079789dceb505347a8c9f1b39a3d8ba01dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347940000000000000000000000000000000000000000a0b7fa0c28101dda5ae6ec343c5a03d3d52bc8cf95f40e89f3dbe360a6fdeddc6fa056e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421a056e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421b901000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000080028401c9c38080846b00271580a0be802454cb4ca56449db1624a1d79f9f1297ae9f4802340eae3fd431a604981288000000000000000084342770c0a056e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b4218080a00000000000000000000000000000000000000000000000000000000000000000a0e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    bytes32 internal constant HEADER_HASH =
        0x6209da3c573d384d0c68df2e85dbd6c1f0d69a7880ebabc265c75ebdb96c920e;
    bytes32 internal constant HEADER_MIX_HASH =
        0xbe802454cb4ca56449db1624a1d79f9f1297ae9f4802340eae3fd431a6049812;
    uint256 private constant MIX_HASH_OFFSET = 463;

    IToken internal token;
    IVault internal vault;
    IMarket internal market;
    IAuditBoard internal board;
    address internal game = makeAddr("game");
    address internal pauser = makeAddr("pauser");
    address internal submitter = makeAddr("submitter");
    address internal solver = makeAddr("solver");
    address internal rival = makeAddr("rival");
    address internal challenger = makeAddr("challenger");
    address internal drawer = makeAddr("drawer");
    address[3] internal verifiers = [makeAddr("verifier 0"), makeAddr("verifier 1"), makeAddr("verifier 2")];
    /// @dev r_0 ... r_K.
    bytes32[] internal states;

    function setUp() public virtual {
        vm.roll(100);
        vm.warp(1_000_000);
        token = _newToken();
        vault = _newVault(token);
        market = _newMarket(vault, _newArbiter(), pauser, _parameters());
        board = _newBoard(vault, market);
        vm.etch(game, hex"00");
        vault.initialise(address(market), address(board), game);
        market.initialise(board, game);
        _fund(submitter);
        _fund(solver);
        _fund(rival);
        for (uint256 i; i < verifiers.length; ++i) {
            _fund(verifiers[i]);
            vm.prank(verifiers[i]);
            board.register(2);
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
            maxMisses: 2,
            unbondingPeriod: 1 days,
            drawFee: DRAW_FEE,
            stakeUnit: 50 * UNIT,
            openingPeriod: 60,
            challengeBond: 20 * UNIT,
            rewardCap: 30 * UNIT
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
            auditFee: FEE,
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
            matches: 2,
            arithmetic: 1,
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

    // ------------------------------------------------------------------ a task's way

    function _post() internal returns (TaskId task) {
        return _post(_terms());
    }

    function _post(Terms memory terms) internal returns (TaskId task) {
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

    /// @dev Trees are hashed before the caller is set: a call of the SHA-256 precompile would take the prank.
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
        task = _assigned(price);
        _submit(task);
    }

    function _drawn(uint128 price) internal returns (TaskId task) {
        task = _submitted(price);
        _draw(task, HEADER_MIX_HASH);
    }

    function _audited(uint128 price) internal returns (TaskId task) {
        task = _drawn(price);
        _attestAll(task);
        vm.warp(market.taskOf(task).challengeUntil + 1);
    }

    function _draw(TaskId task, bytes32 mixHash) internal {
        bytes memory header = _header(mixHash);
        uint64 number = market.taskOf(task).drawBlock;
        vm.roll(uint256(number) + 1);
        vm.setBlockhash(number, keccak256(header));
        vm.prank(drawer);
        board.draw(task, header);
    }

    function _attestAll(TaskId task) internal {
        uint256 count = board.dutiesOf(task).length;
        for (uint256 i; i < count; ++i) {
            _attest(task, i);
        }
    }

    function _attest(TaskId task, uint256 duty) internal {
        address verifier = board.dutiesOf(task)[duty].verifier;
        vm.prank(verifier);
        board.attest(task, duty, keccak256("steps"));
    }

    // ------------------------------------------------------------------ values

    function _root(uint32 size) internal view returns (bytes32) {
        return Trees.root(states, size);
    }

    /// @dev The real header with another mixHash.
    function _header(bytes32 mixHash) internal pure returns (bytes memory header) {
        header = HEADER;
        assembly ("memory-safe") {
            mstore(add(add(header, 0x20), MIX_HASH_OFFSET), mixHash)
        }
    }

    function _escrowOf(Terms memory terms) internal pure returns (uint256) {
        uint256 duties = uint256(terms.verifiers) * (uint256(terms.segmentsPerVerifier) + 1);
        return terms.budget + duties * terms.auditFee + DRAW_FEE;
    }

    function _remaining(uint256 lock) internal view returns (uint256 remaining) {
        (,, remaining,) = vault.lockOf(lock);
    }

    function _expectBounds(string memory field, uint256 value, uint256 least, uint256 most) internal {
        vm.expectRevert(abi.encodeWithSelector(Errors.OutOfBounds.selector, field, least, most, value));
    }
}
