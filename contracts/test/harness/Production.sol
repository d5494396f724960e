// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IArbiter} from "../../src/interfaces/IArbiter.sol";
import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {ICommitments} from "../../src/interfaces/ICommitments.sol";
import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {IJuries} from "../../src/interfaces/IJuries.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {IStakeVault} from "../../src/interfaces/IStakeVault.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {GameId, SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {Parameters} from "../../src/types/Parameters.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Test} from "forge-std/Test.sol";

/// @title The test token, which anyone may mint.
interface IToken is IERC20 {
    function mint(address to, uint256 amount) external;
}

/// @title The vault, with functions that only its deployer and the tests' sums need.
interface IVault is IStakeVault {
    function initialise(
        address market,
        address board,
        address game,
        address commitments,
        address looks,
        address juries
    ) external;

    /// @notice Number of locks; ids are 1 ... locks().
    function locks() external view returns (uint256);
}

/// @title The market, with functions that only its deployer and its pauser need.
interface IMarket is ITaskMarket {
    function initialise(IAuditBoard board, address game, address commitments, address looks, address juries)
        external;
    function pause() external;
    function unpause() external;
}

/// @title Deploys the contracts from their artifacts: exactly the bytecode that a chain gets.
/// @dev Tests use contracts only through their interfaces. A test that imports a contract would be compiled
/// like it, through the IR pipeline, which takes minutes for all tests. The test contract is the deployer.
abstract contract Production is Test {
    address private _bounds;

    function assertEq(TaskId left, TaskId right) internal pure {
        assertEq(TaskId.unwrap(left), TaskId.unwrap(right));
    }

    function assertEq(GameId left, GameId right) internal pure {
        assertEq(GameId.unwrap(left), GameId.unwrap(right));
    }

    function assertEq(SegmentIndex left, SegmentIndex right) internal pure {
        assertEq(SegmentIndex.unwrap(left), SegmentIndex.unwrap(right));
    }

    function _newToken() internal returns (IToken) {
        return IToken(deployCode("TestToken.sol:TestToken"));
    }

    function _newArbiter() internal returns (IArbiter) {
        return IArbiter(deployCode("Arbiter.sol:Arbiter"));
    }

    function _newBeacon(uint256[4] memory key, uint64 genesis, uint64 period) internal returns (IBeacon) {
        return IBeacon(deployCode("DrandBeacon.sol:DrandBeacon", abi.encode(key, genesis, period)));
    }

    function _newVault(IERC20 token) internal returns (IVault) {
        return IVault(deployCode("StakeVault.sol:StakeVault", abi.encode(token, address(this))));
    }

    function _newMarket(
        IStakeVault vault,
        IArbiter arbiter,
        IBeacon beacon,
        address pauser,
        Parameters memory parameters
    ) internal returns (IMarket) {
        // Shared by all markets of a test, so that a test may expect a market's own constructor to revert.
        if (_bounds == address(0)) _bounds = deployCode("TermsBounds.sol:TermsBounds");
        bytes memory arguments =
            abi.encode(vault, arbiter, beacon, _bounds, address(this), pauser, parameters);
        return IMarket(deployCode("TaskMarket.sol:TaskMarket", arguments));
    }

    function _newBoard(IStakeVault vault, ITaskMarket market, IBeacon beacon) internal returns (IAuditBoard) {
        return IAuditBoard(deployCode("AuditBoard.sol:AuditBoard", abi.encode(vault, market, beacon)));
    }

    function _newCommitments(IStakeVault vault, ITaskMarket market, IAuditBoard board)
        internal
        returns (ICommitments)
    {
        return ICommitments(deployCode("Commitments.sol:Commitments", abi.encode(vault, market, board)));
    }

    function _newLooks(IStakeVault vault, ITaskMarket market, IAuditBoard board) internal returns (ILooks) {
        return ILooks(deployCode("Looks.sol:Looks", abi.encode(vault, market, board)));
    }

    function _newJuries(IStakeVault vault, ITaskMarket market, IAuditBoard board) internal returns (IJuries) {
        return IJuries(deployCode("Juries.sol:Juries", abi.encode(vault, market, board)));
    }

    function _newGame(ITaskMarket market, IStakeVault vault, IArbiter arbiter, ICommitments commitments)
        internal
        returns (IDisputeGame)
    {
        bytes memory arguments = abi.encode(market, vault, arbiter, commitments);
        return IDisputeGame(deployCode("DisputeGame.sol:DisputeGame", arguments));
    }
}
