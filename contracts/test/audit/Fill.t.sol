// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {IStakeVault} from "../../src/interfaces/IStakeVault.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Parameters} from "../../src/types/Parameters.sol";
import {Offer} from "../../src/types/Seats.sol";
import {Production} from "../harness/Production.sol";

/// @title The accounts in the seats of a draw; replays the table `fills` of tests/vectors/draws.json.
/// @notice A seed includes the board's address and the beacon's word, so the board is placed at the table's
/// address, and the market, the vault and the beacon only give the answers that the draw needs.
contract FillTest is Production {
    address private constant MARKET = address(0xa1);
    address private constant VAULT = address(0xa2);
    address private constant BEACON = address(0xa3);
    uint64 private constant ROUND = 7;

    string private json;

    function setUp() public {
        json = vm.readFile("tests/vectors/draws.json");
        vm.chainId(_number("chain", 0));
        Parameters memory parameters;
        parameters.stakeUnit = 1;
        vm.mockCall(MARKET, abi.encodeCall(ITaskMarket.parameters, ()), abi.encode(parameters));
        vm.mockCall(MARKET, abi.encodeWithSelector(ITaskMarket.drawn.selector), "");
        vm.mockCall(VAULT, abi.encodeWithSelector(IStakeVault.lock.selector), abi.encode(uint48(1)));
        vm.mockCall(BEACON, abi.encodeWithSelector(IBeacon.roundFrom.selector), abi.encode(ROUND));
    }

    function test_draw_vectors_succeeds() public {
        uint256 rows = vm.parseJsonUintArray(json, ".fills.task").length;
        assertEq(rows, 22);
        for (uint256 row; row < rows; ++row) {
            uint256 before = vm.snapshotState();
            _replay(row);
            assertTrue(vm.revertToState(before));
        }
    }

    function _replay(uint256 row) private {
        IAuditBoard board = IAuditBoard(address(uint160(uint256(bytes32(_bytes("board", row)) >> 96))));
        deployCodeTo("AuditBoard.sol:AuditBoard", abi.encode(VAULT, MARKET, BEACON), address(board));
        TaskId task = TaskId.wrap(_number("task", row));
        _register(board, row);
        ITaskMarket.SeatTerms memory terms;
        terms.status = ITaskMarket.Status.Submitted;
        terms.verifiers = uint16(_number("seats", row));
        terms.root = bytes32(_bytes("root", row));
        terms.lock = 1 << _number("least_level", row);
        vm.mockCall(MARKET, abi.encodeCall(ITaskMarket.seatTermsOf, (task)), abi.encode(terms));
        vm.mockCall(
            BEACON, abi.encodeWithSelector(IBeacon.word.selector), abi.encode(bytes32(_bytes("word", row)))
        );
        vm.startPrank(MARKET);
        board.snapshot(task);
        vm.warp(block.timestamp + 1);
        board.askFirstDraw(task, terms.verifiers);
        vm.stopPrank();
        MapHints[2] memory hints;
        board.draw(task, "", hints);
        (, bytes32 seed) = board.pickedAt(task);
        assertEq(seed, bytes32(_bytes("seed", row)));
        bytes memory numbers;
        for (uint256 seat; seat < terms.verifiers; ++seat) {
            numbers = bytes.concat(numbers, bytes4(uint32(board.seatOf(task, seat).registration)));
        }
        assertEq(numbers, _bytes("accounts", row));
    }

    /// @dev An account that cannot be drawn has an offer that accepts no lock.
    function _register(IAuditBoard board, uint256 row) private {
        bytes memory levels = _bytes("levels", row);
        uint256 able = _number("able", row);
        for (uint256 i; i < levels.length; ++i) {
            Offer memory offer;
            if ((able & (1 << i)) != 0) offer.lock = type(uint128).max;
            vm.prank(address(uint160(0xacc0000 + i)));
            board.register(uint8(levels[i]), offer);
        }
    }

    function _number(string memory column, uint256 row) private view returns (uint256) {
        return vm.parseJsonUintArray(json, string.concat(".fills.", column))[row];
    }

    function _bytes(string memory column, uint256 row) private view returns (bytes memory) {
        return vm.parseJsonBytesArray(json, string.concat(".fills.", column))[row];
    }
}
