// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {Errors} from "./libraries/Errors.sol";

/// @title StakeVault: deposits, locks, unbonding, slashing, pull payments (dispute.md sections 1 and 8).
/// @dev Only `deposit` and `withdraw` call the token. Everything the modules call is bookkeeping, so a hostile token
/// can refuse its own deposits and withdrawals but never a release, a payment or a slash.
contract StakeVault is IStakeVault, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    struct Lock {
        address owner;
        /// End of the unbonding, 0 before it begins.
        uint64 until;
        /// Which module made it: 1 market, 2 audit board, 3 game.
        uint8 module;
        uint256 remaining;
    }

    IERC20 private immutable TOKEN;
    address private immutable DEPLOYER;

    address[3] private _modules;
    /// @dev Place of a module in `_modules`, counted from 1; 0 for everybody else.
    mapping(address account => uint8) private _moduleNumber;
    Lock[] private _locks;

    /// @inheritdoc IStakeVault
    mapping(address account => uint256) public free;
    /// @inheritdoc IStakeVault
    uint256 public burned;

    constructor(IERC20 token_) {
        if (address(token_).code.length == 0) revert Errors.NoCode(address(token_));
        TOKEN = token_;
        DEPLOYER = msg.sender;
        _locks.push(); // Number 0 means "no lock" to the modules.
    }

    /// @notice The deployer names the three modules, once.
    function initialise(address market, address board, address game) external {
        if (msg.sender != DEPLOYER) revert Errors.NotAllowed(msg.sender, DEPLOYER);
        if (_modules[0] != address(0)) revert Errors.AlreadyInitialised();
        _modules = [market, board, game];
        for (uint8 i; i < 3; ++i) {
            if (_modules[i].code.length == 0) revert Errors.NoCode(_modules[i]);
            _moduleNumber[_modules[i]] = i + 1;
        }
    }

    // ------------------------------------------------------------------ accounts

    /// @inheritdoc IStakeVault
    function deposit(uint256 amount) external nonReentrant {
        uint256 before = TOKEN.balanceOf(address(this));
        TOKEN.safeTransferFrom(msg.sender, address(this), amount);
        uint256 balance = TOKEN.balanceOf(address(this));
        if (balance <= before) revert Errors.NothingArrived(amount);
        free[msg.sender] += balance - before;
        emit Deposited(msg.sender, balance - before);
    }

    /// @inheritdoc IStakeVault
    function withdraw(uint256 amount) external nonReentrant {
        _takeFree(msg.sender, amount);
        emit Withdrawn(msg.sender, amount);
        TOKEN.safeTransfer(msg.sender, amount);
    }

    /// @inheritdoc IStakeVault
    function finishUnbonding(uint256 id) external {
        Lock storage entry = _lockAt(id);
        uint64 until = entry.until;
        if (until == 0 || block.timestamp <= until) revert Errors.StillBonded(id, until);
        _release(id, entry, entry.remaining);
    }

    // ------------------------------------------------------------------ modules

    /// @inheritdoc IStakeVault
    function lock(address owner, uint256 amount) external returns (uint256 id) {
        uint8 module = _moduleNumber[msg.sender];
        if (module == 0) revert Errors.NotModule(msg.sender);
        _takeFree(owner, amount);
        id = _locks.length;
        _locks.push(Lock(owner, 0, module, amount));
        emit Locked(id, owner, msg.sender, amount);
    }

    /// @inheritdoc IStakeVault
    function release(uint256 id, uint256 amount) external returns (uint256 taken) {
        return _release(id, _ownLock(id), amount);
    }

    /// @inheritdoc IStakeVault
    function pay(uint256 id, address to, uint256 amount) external returns (uint256 taken) {
        taken = _take(_ownLock(id), amount);
        free[to] += taken;
        emit Paid(id, to, taken);
    }

    /// @inheritdoc IStakeVault
    function burn(uint256 id, uint256 amount) external returns (uint256 taken) {
        taken = _take(_ownLock(id), amount);
        burned += taken;
        emit Burned(id, taken);
    }

    /// @inheritdoc IStakeVault
    function unbond(uint256 id, uint64 until) external {
        _ownLock(id).until = until;
        emit Unbonding(id, until);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IStakeVault
    function token() external view returns (address) {
        return address(TOKEN);
    }

    /// @inheritdoc IStakeVault
    function lockOf(uint256 id)
        external
        view
        returns (address owner, address module, uint256 remaining, uint64 until)
    {
        Lock storage entry = _lockAt(id);
        return (entry.owner, _modules[entry.module - 1], entry.remaining, entry.until);
    }

    /// @notice Number of locks ever made; their ids are 1 ... locks().
    function locks() external view returns (uint256) {
        return _locks.length - 1;
    }

    // ------------------------------------------------------------------ inside

    function _lockAt(uint256 id) private view returns (Lock storage) {
        if (id == 0 || id >= _locks.length) revert Errors.UnknownLock(id);
        return _locks[id];
    }

    function _ownLock(uint256 id) private view returns (Lock storage entry) {
        entry = _lockAt(id);
        if (_moduleNumber[msg.sender] != entry.module) {
            revert Errors.NotAllowed(msg.sender, _modules[entry.module - 1]);
        }
    }

    function _takeFree(address account, uint256 amount) private {
        uint256 available = free[account];
        if (available < amount) revert Errors.NotEnoughFree(account, available, amount);
        free[account] = available - amount;
    }

    function _take(Lock storage entry, uint256 amount) private returns (uint256 taken) {
        uint256 remaining = entry.remaining;
        taken = amount < remaining ? amount : remaining;
        entry.remaining = remaining - taken;
    }

    function _release(uint256 id, Lock storage entry, uint256 amount) private returns (uint256 taken) {
        taken = _take(entry, amount);
        free[entry.owner] += taken;
        emit Released(id, taken);
    }
}
