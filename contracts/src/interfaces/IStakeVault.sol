// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title The only contract that holds tokens.
/// @notice An account's tokens are free, or in locks. A lock belongs to an owner and to the module that made it, and can
/// never pay more than it holds. Everything an account is owed arrives as free balance and is pulled with `withdraw`.
interface IStakeVault {
    /// @notice `amount` arrived and is free.
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

    /// @notice Moves tokens from the caller, credits what arrived (fee-taking tokens credit less).
    function deposit(uint256 amount) external;

    /// @notice Sends free tokens to the caller.
    function withdraw(uint256 amount) external;

    /// @notice Market, audit board, dispute game, commitments, looks and juries, which alone may lock, pay, burn and slash; zeros before
    /// `initialise`. Game and commitments have their locks in common: a bond is locked by the one and ends in the other; so have
    /// audit board, looks and juries.
    function modules() external view returns (address[6] memory);

    /// @notice The ERC-20 whose units all amounts are.
    function token() external view returns (address);

    /// @notice Free tokens of an account.
    function free(address account) external view returns (uint256);

    /// @notice Owner, module and remaining amount of a lock. An empty lock has neither owner nor module, and gives nothing.
    function lockOf(uint256 id) external view returns (address owner, address module, uint256 remaining);

    /// @notice Tokens burned so far. They stay in the vault, out of everybody's reach: sending them away could fail, and a
    /// slash must not. The vault's token balance is free + locked + burned (and gifts that never passed `deposit`).
    function burned() external view returns (uint256);

    /// @notice Modules only: locks free tokens of `owner`. Reverts if there are not enough, or more than 2^94 - 1.
    function lock(address owner, uint256 amount) external returns (uint256 id);

    /// @notice The lock's module only: takes min(amount, remaining) back to the owner's free balance.
    function release(uint256 id, uint256 amount) external returns (uint256 taken);

    /// @notice The lock's module only: moves min(amount, remaining) to the free balance of `to`.
    function pay(uint256 id, address to, uint256 amount) external returns (uint256 taken);

    /// @notice The lock's module only: burns min(amount, remaining).
    function burn(uint256 id, uint256 amount) external returns (uint256 taken);

    /// @notice The locks' module only: pays out of the lock of a stake, which held `stake`: min(reward, stake) to the challenger, then
    /// min(restitution, what is left) to the submitter. The rest stays. Releases the lock `escrow` but for `kept`.
    function slash(
        uint256 id,
        address challenger,
        uint256 reward,
        address submitter,
        uint256 restitution,
        uint256 escrow,
        uint256 kept
    ) external returns (uint256 stake);

    /// @notice The lock's module only: takes all but min(kept, remaining) back to the owner's free balance.
    function releaseBut(uint256 id, uint256 kept) external returns (uint256 taken);
}
