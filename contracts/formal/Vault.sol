// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {StakeVault} from "../src/StakeVault.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title Halmos proofs about the vault's bookkeeping, for all amounts: the receiver gets exactly what is
/// taken from a lock.
/// @notice The contract acts as the token, the vault's deployer and all six modules: the proofs only need
/// code at these addresses.
contract VaultProofs {
    address private constant OWNER = address(0xA11CE);
    address private constant OTHER = address(0xB0B);

    StakeVault private vault;
    uint256 public balanceOf_;

    function setUp() public {
        vault = new StakeVault(IERC20(address(this)), address(this));
        address me = address(this);
        vault.initialise(me, me, me, me, me, me);
    }

    // ------------------------------------------------------------------ the token that the vault asks

    function balanceOf(address) external view returns (uint256) {
        return balanceOf_;
    }

    function transferFrom(address, address, uint256 amount) external returns (bool) {
        balanceOf_ += amount;
        return true;
    }

    // ------------------------------------------------------------------ properties

    /// @dev A release returns the requested amount, at most all that the lock holds; the lock keeps the rest.
    function check_release_conserves(uint96 deposit, uint96 amount, uint256 released) public {
        uint256 lock = _locked(deposit, amount);
        uint256 taken = vault.release(lock, released);
        assert(taken == _least(released, amount));
        assert(vault.free(address(this)) + _remaining(lock) == deposit);
    }

    /// @dev Two payments take no more than the lock holds, and the receiver gets exactly what they take.
    function check_pay_twice_conserves(uint96 deposit, uint96 amount, uint256 first, uint256 second) public {
        uint256 lock = _locked(deposit, amount);
        uint256 taken = vault.pay(lock, OTHER, first);
        taken += vault.pay(lock, OTHER, second);
        assert(taken <= amount);
        assert(vault.free(OTHER) == taken);
        assert(vault.free(address(this)) + _remaining(lock) + taken == deposit);
    }

    /// @dev Burned tokens are credited to nobody, and counted.
    function check_burn_conserves(uint96 deposit, uint96 amount, uint256 burned) public {
        uint256 lock = _locked(deposit, amount);
        uint256 taken = vault.burn(lock, burned);
        assert(taken == _least(burned, amount));
        assert(vault.burned() == taken);
        assert(vault.free(address(this)) + _remaining(lock) + taken == deposit);
    }

    /// @dev Half of a penalty, rounded down, goes to the receiver, and the rest burns.
    function check_half_burnsTheRest(uint96 deposit, uint96 amount) public {
        uint256 lock = _locked(deposit, amount);
        uint256 paid = vault.pay(lock, OTHER, uint256(amount) / 2);
        uint256 burned = vault.burn(lock, type(uint256).max);
        assert(vault.free(OTHER) == paid && paid + burned == amount);
        assert(burned - paid <= 1 && vault.burned() == burned && _remaining(lock) == 0);
    }

    /// @dev A conviction pays reward and restitution out of the stake, as far as it suffices, and empties the
    /// escrow except for what is kept.
    function check_slash_conserves(
        uint96 deposit,
        uint96 stake,
        uint96 escrow,
        uint128 reward,
        uint128 restitution,
        uint128 kept
    ) public {
        uint256 lock = _locked(deposit, stake);
        uint256 second = vault.lock(address(this), escrow);
        uint256 held = vault.slash(lock, OWNER, reward, OTHER, restitution, second, kept);
        assert(held == stake);
        uint256 paid = vault.free(OWNER) + vault.free(OTHER);
        assert(paid == _least(uint256(reward) + restitution, stake));
        assert(_remaining(second) == _least(kept, escrow));
        assert(vault.free(address(this)) + _remaining(lock) + _remaining(second) + paid == deposit);
    }

    // ------------------------------------------------------------------ inside

    /// @dev Deposits tokens and locks a part of them. Halmos ignores inputs for which a call reverts.
    function _locked(uint96 deposit, uint96 amount) private returns (uint256) {
        vault.deposit(deposit);
        return vault.lock(address(this), amount);
    }

    function _remaining(uint256 lock) private view returns (uint256 remaining) {
        (,, remaining) = vault.lockOf(lock);
    }

    function _least(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
