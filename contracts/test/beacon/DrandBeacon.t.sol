// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {Signing} from "./Signing.sol";

/// @title Rounds of the beacon: accepted signatures, publication times, and shown rounds.
contract DrandBeaconTest is Signing {
    uint64 private constant ROUND = 9337227;
    /// @dev Gas of a call in which the pairing precompile refuses its input: it then consumes all the gas it
    /// was given.
    uint256 private constant REFUSAL = 3_000_000;

    IBeacon private beacon;

    function setUp() public {
        beacon = _newBeacon(_key(), GENESIS, PERIOD);
        vm.warp(beacon.timeOf(ROUND));
    }

    // ------------------------------------------------------------------ signatures

    function testFuzz_word_anyRound_isHashOfSignature_succeeds(uint64 round) public view {
        vm.assume(round != 0);
        bytes memory signature = _sign(round);
        assertEq(beacon.word(round, signature, _hints(round)), sha256(signature));
    }

    function testFuzz_word_otherRoundsSignature_reverts(uint64 round) public {
        vm.assume(round != 0 && round != ROUND);
        _expectNotSigned(round, _sign(ROUND));
    }

    function test_word_otherRoundsHints_reverts() public {
        uint256[2] memory u = curve.toField(_message(ROUND));
        MapHints[2] memory hints = _hints(ROUND + 1);
        bytes memory signature = _sign(ROUND);
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongHint.selector, u[0], 0, hints[0].inverse));
        beacon.word(ROUND, signature, hints);
    }

    function test_word_otherKey_reverts() public {
        // G2's generator, the key of secret 1.
        beacon = _newBeacon(
            [
                0x198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2,
                0x1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed,
                0x090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b,
                0x12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa
            ],
            GENESIS,
            PERIOD
        );
        _expectNotSigned(ROUND, _sign(ROUND));
        // With secret 1 the point itself is the signature.
        uint256[2] memory point = _packagePoint(_message(ROUND));
        beacon.word(ROUND, abi.encode(point), _hints(ROUND));
    }

    function test_word_negatedSignature_reverts() public {
        (uint256 x, uint256 y) = _signed();
        _expectNotSigned(ROUND, abi.encode(x, P - y));
    }

    function test_word_otherLengths_reverts() public {
        bytes memory longer = bytes.concat(_sign(ROUND), bytes32(0));
        // 48 and 96 bytes are the signature lengths of drand's networks on BLS12-381.
        uint256[6] memory lengths = [uint256(0), 48, 63, 65, 95, 96];
        for (uint256 i; i < lengths.length; ++i) {
            bytes memory signature = new bytes(lengths[i]);
            for (uint256 j; j < lengths[i]; ++j) {
                signature[j] = longer[j];
            }
            MapHints[2] memory hints = _hints(ROUND);
            vm.expectRevert(abi.encodeWithSelector(Refusals.SignatureLength.selector, 64, lengths[i]));
            beacon.word(ROUND, signature, hints);
        }
    }

    function test_word_infinity_reverts() public {
        _expectNotAPoint(0, 0);
        _expectNotAPoint(P, P);
        _expectNotAPoint(0, P);
    }

    function test_word_coordinatesNotReduced_reverts() public {
        (uint256 x, uint256 y) = _signed();
        for (uint256 i = 1; i < 5; ++i) {
            _expectNotAPoint(x + i * P, y);
            _expectNotAPoint(x, y + i * P);
            _expectNotAPoint(x + i * P, y + i * P);
        }
    }

    /// @dev Points of y^2 = x^3 + b for another b.
    function testFuzz_word_offTheCurve_reverts(uint256 x, uint256 y) public {
        x %= P;
        y %= P;
        vm.assume(mulmod(y, y, P) != addmod(mulmod(mulmod(x, x, P), x, P), 3, P));
        _expectNotAPoint(x, y);
    }

    /// @dev A signature with one bit flipped is not a point with reduced coordinates.
    function testFuzz_word_bitFlipped_reverts(uint16 bit) public {
        bytes memory signature = _sign(ROUND);
        bit %= 512;
        signature[bit / 8] ^= bytes1(uint8(1 << (bit % 8)));
        (uint256 x, uint256 y) = abi.decode(signature, (uint256, uint256));
        _expectNotAPoint(x, y);
    }

    function test_word_roundZero_reverts() public {
        MapHints[2] memory hints = _hints(0);
        bytes memory signature = _sign(0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.RoundOutside.selector, 1, type(uint64).max, 0));
        beacon.word(0, signature, hints);
    }

    /// @dev Too little gas causes a revert, never a wrong word.
    function testFuzz_word_anyGas_wordOrRevert_succeeds(uint256 limit) public view {
        bytes memory signature = _sign(ROUND);
        try beacon.word{gas: bound(limit, 0, 150_000)}(ROUND, signature, _hints(ROUND)) returns (
            bytes32 word
        ) {
            assertEq(word, sha256(signature));
        } catch {}
    }

    // ------------------------------------------------------------------ deployment

    function test_constructor_keepsWhatItIsGiven_succeeds() public view {
        assertEq(abi.encode(beacon.key()), abi.encode(_key()));
        assertEq(beacon.genesis(), GENESIS);
        assertEq(beacon.period(), PERIOD);
        assertEq(beacon.latest(), 0);
    }

    function test_constructor_noKey_reverts() public {
        uint256[4] memory key = _key();
        this.expectNoKey{gas: REFUSAL}([uint256(0), 0, 0, 0]);
        this.expectNoKey{gas: REFUSAL}([key[1], key[0], key[3], key[2]]);
        this.expectNoKey{gas: REFUSAL}([key[0] + P, key[1], key[2], key[3]]);
        this.expectNoKey{gas: REFUSAL}([key[0], key[1], key[2], key[3] + P]);
        this.expectNoKey{gas: REFUSAL}([key[0], key[1], key[2], key[3] ^ 1]);
    }

    /// @dev A point of the twist, x = 1, whose order is not the group's order.
    function test_constructor_keyOutsideGroup_reverts() public {
        this.expectNoKey{gas: REFUSAL}(
            [
                0,
                1,
                0x0d1271953ed9ea0836846e70a1934187998c7f790cb4d7511b7f8da82de048a4,
                0x2869111d5381f072f8e2728fdb825a51aadd70e52c9830e9ab4b871c0531f1bb
            ]
        );
    }

    function test_constructor_zero_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.Zero.selector, "genesis"));
        _newBeacon(_key(), 0, PERIOD);
        vm.expectRevert(abi.encodeWithSelector(Refusals.Zero.selector, "period"));
        _newBeacon(_key(), GENESIS, 0);
    }

    // ------------------------------------------------------------------ time

    function test_timeOf_evmnet_succeeds() public {
        assertEq(beacon.timeOf(1), GENESIS);
        assertEq(beacon.timeOf(ROUND), 1755532753);
        vm.expectRevert(abi.encodeWithSelector(Refusals.RoundOutside.selector, 1, type(uint64).max, 0));
        beacon.timeOf(0);
    }

    function testFuzz_roundAt_lastPublished_succeeds(uint64 genesis, uint64 period, uint64 time) public {
        beacon = _newBeacon(_key(), uint64(bound(genesis, 1, type(uint64).max)), period | 1);
        uint64 round = beacon.roundAt(time);
        if (round == 0) assertLt(time, beacon.genesis());
        else assertLe(beacon.timeOf(round), time);
        if (round != type(uint64).max) assertGt(beacon.timeOf(round + 1), time);
    }

    function testFuzz_roundFrom_firstPublished_succeeds(uint64 genesis, uint64 period, uint64 time) public {
        beacon = _newBeacon(_key(), uint64(bound(genesis, 1, type(uint64).max)), period | 1);
        uint64 round = beacon.roundFrom(time);
        assertGe(beacon.timeOf(round), time);
        if (round != 1) assertLt(beacon.timeOf(round - 1), time);
    }

    // ------------------------------------------------------------------ showing

    function test_show_newRound_isLatest_succeeds() public {
        bytes memory signature = _sign(ROUND);
        MapHints[2] memory hints = _hints(ROUND);
        vm.expectEmit(address(beacon));
        emit IBeacon.Shown(ROUND, sha256(signature));
        assertEq(beacon.show(ROUND, signature, hints), sha256(signature));
        assertEq(beacon.latest(), ROUND);
    }

    function test_show_notNewer_reverts() public {
        beacon.show(ROUND - 1, _sign(ROUND - 1), _hints(ROUND - 1));
        _expectNoShow(ROUND - 1, ROUND, ROUND);
        _expectNoShow(ROUND - 2, ROUND, ROUND);
        _expectNoShow(0, ROUND, ROUND);
        beacon.show(ROUND, _sign(ROUND), _hints(ROUND));
        assertEq(beacon.latest(), ROUND);
    }

    function test_show_notYetPublished_reverts() public {
        _expectNoShow(ROUND + 1, 1, ROUND);
        vm.warp(beacon.timeOf(ROUND + 1) - 1);
        _expectNoShow(ROUND + 1, 1, ROUND);
        vm.warp(beacon.timeOf(ROUND + 1));
        beacon.show(ROUND + 1, _sign(ROUND + 1), _hints(ROUND + 1));
        vm.warp(GENESIS - 1);
        _expectNoShow(1, ROUND + 2, 0);
    }

    function test_show_wrongSignature_changesNothing_reverts() public {
        bytes memory signature = _sign(ROUND - 1);
        MapHints[2] memory hints = _hints(ROUND);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotSigned.selector, ROUND));
        beacon.show(ROUND, signature, hints);
        assertEq(beacon.latest(), 0);
    }

    function expectNoKey(uint256[4] calldata key) external {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAKey.selector, key));
        _newBeacon(key, GENESIS, PERIOD);
    }

    function _signed() private view returns (uint256 x, uint256 y) {
        return abi.decode(_sign(ROUND), (uint256, uint256));
    }

    function _expectNotSigned(uint64 round, bytes memory signature) private {
        MapHints[2] memory hints = _hints(round);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotSigned.selector, round));
        beacon.word(round, signature, hints);
    }

    function _expectNotAPoint(uint256 x, uint256 y) private {
        MapHints[2] memory hints = _hints(ROUND);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAPoint.selector, x, y));
        beacon.word(ROUND, abi.encode(x, y), hints);
    }

    function _expectNoShow(uint64 round, uint64 least, uint64 most) private {
        bytes memory signature = _sign(round);
        MapHints[2] memory hints = _hints(round);
        vm.expectRevert(abi.encodeWithSelector(Refusals.RoundOutside.selector, least, most, round));
        beacon.show(round, signature, hints);
    }
}
