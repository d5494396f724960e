// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {Signing} from "./Signing.sol";

/// @title The beacon compared with the npm package @kevincharm/bls-bn254, which finds roots and inverses
/// itself.
contract PackageTest is Signing {
    uint256 private constant COUNT = 1000;

    function test_hash_thousandMessages_asPackage_succeeds() public view {
        for (uint256 i; i < COUNT; ++i) {
            bytes32 message = keccak256(abi.encode("message", i));
            (uint256 x, uint256 y) = curve.hash(message, _hintsOf(message));
            uint256[2] memory due = _packagePoint(message);
            assertEq(x, due[0]);
            assertEq(y, due[1]);
        }
    }

    function test_word_thousandRounds_asPackage_succeeds() public {
        IBeacon beacon = _newBeacon(_key(), GENESIS, PERIOD);
        for (uint256 i; i < COUNT; ++i) {
            // Rounds of any magnitude, at least 1.
            uint64 round = uint64(uint256(keccak256(abi.encode("round", i))) >> (192 + i % 63)) | 1;
            bytes memory signature = _sign(round);
            assertTrue(_packageAccepts(round, signature));
            assertEq(beacon.word(round, signature, _hints(round)), sha256(signature));
        }
    }

    function _packageAccepts(uint64 round, bytes memory signature) private view returns (bool) {
        uint256[4] memory key = _key();
        // The package orders a key as x0, x1, y0, y1.
        (bool valid, bool done,) = package.test__verifySingle(
            abi.decode(signature, (uint256[2])),
            [key[1], key[0], key[3], key[2]],
            _packagePoint(_message(round))
        );
        return valid && done;
    }
}
