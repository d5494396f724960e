// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {Refusals} from "./libraries/Refusals.sol";

/// @title StakeVault: deposits, locks, slashing, pull payments (dispute.md section 1, audit.md section 8).
/// @dev Only `deposit` and `withdraw` call the token. The modules' calls only change the vault's own
/// accounts, so a hostile token can refuse its own deposits and withdrawals but never block a release, a
/// payment or a slash.
contract StakeVault is IStakeVault, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    /// @notice A lock; deleted when it is empty.
    struct Lock {
        // ---- slot 0
        address owner;
        /// 4 * remaining + the module that made the lock: 1 for the market; 2 for audit board, looks and
        /// juries; 3 for game and commitments.
        uint96 held;
    }

    /// @notice Maximum amount of one lock: 2^94 - 1, which is 19.8 billion of a token with 18 decimals.
    uint256 private constant MAX_LOCK = type(uint96).max >> 2;

    IERC20 private immutable TOKEN;
    address private immutable DEPLOYER;

    address[6] private _modules;
    /// @dev Number of the module, counted from 1; the commitments have the game's 3, looks and juries the
    /// board's 2. 0 for any other account.
    mapping(address account => uint8) private _moduleNumber;
    /// @dev Numbered from 1: to the modules, number 0 means "no lock".
    mapping(uint256 id => Lock) private _locks;
    /// @dev The number of the newest lock and the total burned share a slot, which every lock writes.
    uint64 private _newest;
    uint192 private _burned;

    /// @inheritdoc IStakeVault
    mapping(address account => uint256) public free;

    /// @notice Only `deployer` may initialise; `msg.sender` may be a factory that anyone can use to create
    /// this contract.
    constructor(IERC20 token_, address deployer) {
        if (address(token_).code.length == 0) revert Refusals.NoCode(address(token_));
        TOKEN = token_;
        DEPLOYER = deployer;
    }

    /// @notice Sets the modules. Deployer only, once.
    function initialise(
        address market,
        address board,
        address game,
        address commitments,
        address looks,
        address juries
    ) external {
        if (msg.sender != DEPLOYER) revert Refusals.NotAllowed(DEPLOYER, msg.sender);
        if (_modules[0] != address(0)) revert Refusals.AlreadyInitialised();
        _modules = [market, board, game, commitments, looks, juries];
        uint8[6] memory numbers = [1, 2, 3, 3, 2, 2];
        for (uint256 i; i < 6; ++i) {
            if (_modules[i].code.length == 0) revert Refusals.NoCode(_modules[i]);
            _moduleNumber[_modules[i]] = numbers[i];
        }
    }

    // ------------------------------------------------------------------ accounts

    /// @inheritdoc IStakeVault
    function deposit(uint256 amount) external nonReentrant {
        uint256 before = TOKEN.balanceOf(address(this));
        TOKEN.safeTransferFrom(msg.sender, address(this), amount);
        uint256 balance = TOKEN.balanceOf(address(this));
        if (balance <= before) revert Refusals.NothingArrived(amount);
        free[msg.sender] += balance - before;
        emit Deposited(msg.sender, balance - before);
    }

    /// @inheritdoc IStakeVault
    function withdraw(uint256 amount) external nonReentrant {
        _takeFree(msg.sender, amount);
        emit Withdrawn(msg.sender, amount);
        TOKEN.safeTransfer(msg.sender, amount);
    }

    // ------------------------------------------------------------------ modules

    /// @inheritdoc IStakeVault
    function lock(address owner, uint256 amount) external returns (uint256 id) {
        uint8 module = _moduleNumber[msg.sender];
        if (module == 0) revert Refusals.NotModule(msg.sender);
        if (amount > MAX_LOCK) revert Refusals.OutOfBounds("lock", 0, MAX_LOCK, amount);
        _takeFree(owner, amount);
        id = ++_newest;
        _locks[id] = Lock(owner, uint96(amount << 2 | module));
        emit Locked(id, owner, msg.sender, amount);
    }

    /// @inheritdoc IStakeVault
    function release(uint256 id, uint256 amount) external returns (uint256 taken) {
        return _release(id, _ownLock(id), amount);
    }

    /// @inheritdoc IStakeVault
    function releaseBut(uint256 id, uint256 kept) external returns (uint256 taken) {
        return _releaseBut(id, _ownLock(id), kept);
    }

    /// @inheritdoc IStakeVault
    function pay(uint256 id, address to, uint256 amount) external returns (uint256 taken) {
        return _pay(id, _ownLock(id), to, amount);
    }

    /// @inheritdoc IStakeVault
    function burn(uint256 id, uint256 amount) external returns (uint256 taken) {
        taken = _take(id, _ownLock(id), amount);
        _destroy(id, taken);
    }

    /// @inheritdoc IStakeVault
    function slash(
        uint256 id,
        address challenger,
        uint256 reward,
        address submitter,
        uint256 restitution,
        uint256 escrow,
        uint256 kept
    ) external returns (uint256 stake) {
        Lock storage entry = _ownLock(id);
        stake = entry.held >> 2;
        _pay(id, entry, challenger, reward);
        _pay(id, entry, submitter, restitution);
        _releaseBut(escrow, _ownLock(escrow), kept);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IStakeVault
    function modules() external view returns (address[6] memory) {
        return _modules;
    }

    /// @inheritdoc IStakeVault
    function token() external view returns (address) {
        return address(TOKEN);
    }

    /// @inheritdoc IStakeVault
    function lockOf(uint256 id) external view returns (address owner, address module, uint256 remaining) {
        Lock storage entry = _lockAt(id);
        if (entry.owner == address(0)) return (address(0), address(0), 0);
        return (entry.owner, _moduleOf(entry), entry.held >> 2);
    }

    /// @inheritdoc IStakeVault
    function burned() external view returns (uint256) {
        return _burned;
    }

    /// @notice Number of locks ever made; ids are 1 ... locks().
    function locks() external view returns (uint256) {
        return _newest;
    }

    // ------------------------------------------------------------------ inside

    function _lockAt(uint256 id) private view returns (Lock storage entry) {
        entry = _locks[id];
        if (entry.owner == address(0) && (id == 0 || id > _newest)) revert Refusals.UnknownLock(id);
    }

    /// @dev Any module may use an empty lock, which pays nothing.
    function _ownLock(uint256 id) private view returns (Lock storage entry) {
        entry = _lockAt(id);
        uint8 module = _moduleNumber[msg.sender];
        if (entry.owner == address(0)) {
            if (module == 0) revert Refusals.NotModule(msg.sender);
        } else if (module != entry.held & 3) {
            revert Refusals.NotAllowed(_moduleOf(entry), msg.sender);
        }
    }

    function _moduleOf(Lock storage entry) private view returns (address) {
        return _modules[(entry.held & 3) - 1];
    }

    function _takeFree(address account, uint256 amount) private {
        uint256 available = free[account];
        if (available < amount) revert Refusals.NotEnoughFree(account, amount, available);
        free[account] = available - amount;
    }

    function _take(uint256 id, Lock storage entry, uint256 amount) private returns (uint256 taken) {
        uint96 held = entry.held;
        uint256 remaining = held >> 2;
        taken = amount < remaining ? amount : remaining;
        if (taken == remaining) delete _locks[id];
        else entry.held = held - uint96(taken << 2); // The module's two bits stay.
    }

    function _release(uint256 id, Lock storage entry, uint256 amount) private returns (uint256 taken) {
        address owner = entry.owner;
        taken = _take(id, entry, amount);
        free[owner] += taken;
        emit Released(id, taken);
    }

    function _releaseBut(uint256 id, Lock storage entry, uint256 kept) private returns (uint256) {
        if (kept == 0) return _release(id, entry, type(uint256).max);
        uint256 remaining = entry.held >> 2;
        return _release(id, entry, remaining > kept ? remaining - kept : 0);
    }

    function _pay(uint256 id, Lock storage entry, address to, uint256 amount)
        private
        returns (uint256 taken)
    {
        taken = _take(id, entry, amount);
        _credit(id, to, taken);
    }

    /// @dev Credits the account with what was taken from the lock.
    function _credit(uint256 id, address to, uint256 taken) private {
        free[to] += taken;
        emit Paid(id, to, taken);
    }

    /// @dev Burns what was taken from the lock. Fewer than 2^64 locks each hold less than 2^94 tokens, so the
    /// sum is below 2^192.
    function _destroy(uint256 id, uint256 taken) private {
        _burned += uint192(taken);
        emit Burned(id, taken);
    }
}
