// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Digests} from "../../src/libraries/Digests.sol";
import {TaskId} from "../../src/types/Ids.sol";

/// @title External functions for Digests, so that chunks and paths are calldata.
contract DigestHarness {
    function salt(address board, TaskId task, uint256 seat, address account, bytes32 seed, bytes32 secret)
        external
        view
        returns (bytes32)
    {
        return Digests.salt(board, task, seat, account, seed, secret);
    }

    function leaf(bytes32 salt_, bytes calldata chunk) external view returns (bytes32) {
        return Digests.leaf(salt_, chunk);
    }

    function fold(bytes32 node, uint256 turns, uint256 depth, bytes32[] calldata path)
        external
        view
        returns (bytes32)
    {
        return Digests.fold(node, turns, depth, path);
    }
}
