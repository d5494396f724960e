// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {Snapshot} from "../harness/Snapshot.sol";
import {Signing} from "./Signing.sol";

/// @title Gas cost of a round under the rules of two hard forks, Prague and Osaka: Osaka reprices MODEXP,
/// which the beacon does not use.
contract BeaconGasTest is Signing, Snapshot {
    uint256 private constant LIMIT = 130_000;

    IBeacon private beacon;

    function setUp() public {
        beacon = _newBeacon(_key(), GENESIS, PERIOD);
        vm.warp(GENESIS + 100 * PERIOD);
    }

    function test_gas_word_prague_belowLimit_succeeds() public {
        _measureWord(1360);
    }

    /// forge-config: default.evm_version = "osaka"
    function test_gas_word_osaka_belowLimit_succeeds() public {
        _measureWord(4080);
    }

    /// @notice The third x costs most; rounds 1 to 64 use it for both elements, for either one, and for
    /// neither.
    function test_gas_word_manyRounds_belowLimit_succeeds() public view {
        for (uint64 round = 1; round <= 64; ++round) {
            bytes memory signature = _sign(round);
            MapHints[2] memory hints = _hints(round);
            beacon.word(round, signature, hints);
            assertLt(vm.lastCallGas().gasTotalUsed, LIMIT);
        }
    }

    /// forge-config: default.isolate = true
    function test_gas_show_belowLimit_succeeds() public {
        beacon.show(5, _sign(5), _hints(5));
        _matches("show first", 200_000);
        beacon.show(6, _sign(6), _hints(6));
        _matches("show", 180_000);
    }

    /// @dev A call from a contract, as a draw makes it, not a separate transaction. The gas of MODEXP with a
    /// 256-bit exponent shows which rules apply: EIP-2565's or EIP-7883's.
    function _measureWord(uint256 modexp) private {
        bytes memory signature = _sign(5);
        MapHints[2] memory hints = _hints(5);
        (bool done,) = address(5).staticcall(abi.encode(32, 32, 32, 2, type(uint256).max, P));
        assertTrue(done);
        assertEq(vm.lastCallGas().gasTotalUsed, modexp);
        beacon.word(5, signature, hints);
        _matches("word of a round", LIMIT);
    }
}
