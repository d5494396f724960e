// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The only contract that holds tokens.
/// @notice An account's tokens are either free or in locks. A lock belongs to an owner and to the module that
/// made it, and never pays more than it holds. All tokens that an account is paid are credited to its free
/// balance, from which it takes them with `withdraw`.
interface IStakeVault {
    /// @notice `amount` arrived and is now free.
    event Deposited(address indexed account, uint256 amount);
    /// @notice `amount` of the free tokens was sent to the account.
    event Withdrawn(address indexed account, uint256 amount);
    /// @notice `amount` of the owner's free tokens went into a new lock, which belongs to `module`.
    event Locked(uint256 indexed lock, address indexed owner, address indexed module, uint256 amount);
    /// @notice `amount` went from the lock back to the owner's free balance.
    event Released(uint256 indexed lock, uint256 amount);
    /// @notice `amount` went from the lock to the free balance of `to`.
    event Paid(uint256 indexed lock, address indexed to, uint256 amount);
    /// @notice `amount` of the lock was burned.
    event Burned(uint256 indexed lock, uint256 amount);

    /// @notice Moves tokens from the caller and credits what arrived (less than `amount` for fee-taking
    /// tokens).
    function deposit(uint256 amount) external;

    /// @notice Sends free tokens to the caller.
    function withdraw(uint256 amount) external;

    /// @notice Market, audit board, dispute game, commitments, looks and juries: only these may lock,
    /// release, pay, burn and slash. Zeros before `initialise`. Game and commitments share their locks,
    /// because the commitments lock a bond and the game may release, pay or burn it. Audit board, looks and
    /// juries share theirs too.
    function modules() external view returns (address[6] memory);

    /// @notice The ERC-20 token in whose units all amounts are given.
    function token() external view returns (address);

    /// @notice Free tokens of an account.
    function free(address account) external view returns (uint256);

    /// @notice Owner, module and remaining amount of a lock. For modules that share their locks, `module` is
    /// the game or the audit board. An empty lock has neither owner nor module, and pays nothing.
    function lockOf(uint256 id) external view returns (address owner, address module, uint256 remaining);

    /// @notice Tokens burned so far. They stay in the vault, where nobody can reach them: sending them away
    /// could fail, and a slash must not fail. The vault's token balance is free + locked + burned, plus any
    /// tokens sent to it without `deposit`.
    function burned() external view returns (uint256);

    /// @notice Modules only: locks free tokens of `owner`. Reverts if it has too few, or if `amount` exceeds
    /// 2^94 - 1.
    function lock(address owner, uint256 amount) external returns (uint256 id);

    /// @notice The lock's module only: returns min(amount, remaining) to the owner's free balance.
    function release(uint256 id, uint256 amount) external returns (uint256 taken);

    /// @notice The lock's module only: moves min(amount, remaining) to the free balance of `to`.
    function pay(uint256 id, address to, uint256 amount) external returns (uint256 taken);

    /// @notice The lock's module only: burns min(amount, remaining).
    function burn(uint256 id, uint256 amount) external returns (uint256 taken);

    /// @notice The module of both locks only: pays out of the lock of a stake, which held `stake`:
    /// min(reward, stake) to the challenger, then min(restitution, what is left) to the submitter. The rest
    /// stays locked. Releases the lock `escrow` except for `kept`.
    function slash(
        uint256 id,
        address challenger,
        uint256 reward,
        address submitter,
        uint256 restitution,
        uint256 escrow,
        uint256 kept
    ) external returns (uint256 stake);

    /// @notice The lock's module only: returns all but min(kept, remaining) to the owner's free balance.
    function releaseBut(uint256 id, uint256 kept) external returns (uint256 taken);
}
