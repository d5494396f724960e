// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IBeacon} from "./interfaces/IBeacon.sol";
import {Bn254} from "./libraries/Bn254.sol";
import {HashToCurve} from "./libraries/HashToCurve.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {MapHints} from "./types/Hints.sol";

/// @title Checks rounds of a drand network of scheme `bls-bn254-unchained-on-g1`, such as the League of
/// Entropy's evmnet.
/// @notice A round's message is keccak256(round as u64, big-endian), hashed to BN254's G1 by RFC 9380's
/// BN254G1_XMD:KECCAK-256_SVDW_RO_. Its signature is that point times the secret key. The chain only needs
/// SHA-256 and the precompiles of EIP-196 and EIP-197.
contract DrandBeacon is IBeacon {
    /// @inheritdoc IBeacon
    // forge-lint: disable-next-line(screaming-snake-case-immutable)
    uint64 public immutable genesis;
    /// @inheritdoc IBeacon
    // forge-lint: disable-next-line(screaming-snake-case-immutable)
    uint64 public immutable period;
    /// @inheritdoc IBeacon
    uint64 public latest;

    uint256 private immutable _X1;
    uint256 private immutable _X0;
    uint256 private immutable _Y1;
    uint256 private immutable _Y0;

    /// @notice Reverts if the key is not a point of G2, or if genesis or period is 0.
    constructor(uint256[4] memory key_, uint64 genesis_, uint64 period_) {
        if (!Bn254.isKey(key_)) revert Refusals.NotAKey(key_);
        if (genesis_ == 0) revert Refusals.Zero("genesis");
        if (period_ == 0) revert Refusals.Zero("period");
        (_X1, _X0, _Y1, _Y0) = (key_[0], key_[1], key_[2], key_[3]);
        (genesis, period) = (genesis_, period_);
    }

    /// @inheritdoc IBeacon
    function show(uint64 round, bytes calldata signature, MapHints[2] calldata hints)
        external
        returns (bytes32 shown)
    {
        uint64 least = latest + 1;
        uint64 most = roundAt(uint64(block.timestamp));
        if (round < least || round > most) revert Refusals.RoundOutside(least, most, round);
        shown = word(round, signature, hints);
        latest = round;
        emit Shown(round, shown);
    }

    /// @inheritdoc IBeacon
    function word(uint64 round, bytes calldata signature, MapHints[2] calldata hints)
        public
        view
        returns (bytes32)
    {
        if (round == 0) revert Refusals.RoundOutside(1, type(uint64).max, 0);
        if (signature.length != 64) revert Refusals.SignatureLength(64, signature.length);
        uint256[2] memory point = abi.decode(signature, (uint256[2]));
        if (!Bn254.isPoint(point[0], point[1])) revert Refusals.NotAPoint(point[0], point[1]);
        (uint256 x, uint256 y) = HashToCurve.hash(keccak256(abi.encodePacked(round)), hints);
        if (!Bn254.isSigned(point, x, y, key())) revert Refusals.NotSigned(round);
        return sha256(signature);
    }

    /// @inheritdoc IBeacon
    function key() public view returns (uint256[4] memory) {
        return [_X1, _X0, _Y1, _Y0];
    }

    /// @inheritdoc IBeacon
    function timeOf(uint64 round) public view returns (uint256) {
        if (round == 0) revert Refusals.RoundOutside(1, type(uint64).max, 0);
        return genesis + (uint256(round) - 1) * period;
    }

    /// @inheritdoc IBeacon
    function roundAt(uint64 time) public view returns (uint64) {
        return time < genesis ? 0 : (time - genesis) / period + 1;
    }

    /// @inheritdoc IBeacon
    function roundFrom(uint64 time) external view returns (uint64) {
        return time == 0 ? 1 : roundAt(time - 1) + 1;
    }
}
