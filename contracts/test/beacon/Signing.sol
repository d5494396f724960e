// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Rounds} from "../harness/Rounds.sol";
import {BLSTest} from "@kevincharm/bls-bn254/test/BLSTest.sol";

/// @title Signs rounds for the tests of the beacon itself.
/// @notice The npm package computes the messages' points, so signatures do not depend on the code under test.
abstract contract Signing is Rounds {
    uint64 internal constant GENESIS = 1727521075;
    uint64 internal constant PERIOD = 3;

    BLSTest internal package = new BLSTest();

    function _point(bytes32 message) internal view override returns (uint256[2] memory) {
        return _packagePoint(message);
    }

    function _packagePoint(bytes32 message) internal view returns (uint256[2] memory point) {
        (point,) =
            package.test__hashToPoint("BLS_SIG_BN254G1_XMD:KECCAK-256_SVDW_RO_NUL_", abi.encode(message));
    }
}
