// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {StakeVault} from "../src/StakeVault.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title What Halmos proves of the vault's bookkeeping, for all amounts: what is taken from a lock is what its receiver gets.
/// @notice The contract is its own token, its vault's deployer and all six modules, for proofs need code at these addresses, no more.
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

    /// @dev A lock holds what its owner has less, and a release gives back as much, at most all of it.
    function check_release_conserves(uint96 deposit, uint96 amount, uint256 released) public {
        uint256 lock = _locked(deposit, amount);
        uint256 taken = vault.release(lock, released);
        assert(taken == _least(released, amount));
        assert(vault.free(address(this)) + _remaining(lock) == deposit);
    }

    /// @dev Two payments take no more than the lock holds, and what they take is the receiver's.
    function check_pay_twice_conserves(uint96 deposit, uint96 amount, uint256 first, uint256 second) public {
        uint256 lock = _locked(deposit, amount);
        uint256 taken = vault.pay(lock, OTHER, first);
        taken += vault.pay(lock, OTHER, second);
        assert(taken <= amount);
        assert(vault.free(OTHER) == taken);
        assert(vault.free(address(this)) + _remaining(lock) + taken == deposit);
    }

    /// @dev What is burned is nobody's, and counted.
    function check_burn_conserves(uint96 deposit, uint96 amount, uint256 burned) public {
        uint256 lock = _locked(deposit, amount);
        uint256 taken = vault.burn(lock, burned);
        assert(taken == _least(burned, amount));
        assert(vault.burned() == taken);
        assert(vault.free(address(this)) + _remaining(lock) + taken == deposit);
    }

    /// @dev Half of a penalty, rounded down, is the receiver's, and the rest burns.
    function check_half_burnsTheRest(uint96 deposit, uint96 amount) public {
        uint256 lock = _locked(deposit, amount);
        uint256 paid = vault.pay(lock, OTHER, uint256(amount) / 2);
        uint256 burned = vault.burn(lock, type(uint256).max);
        assert(vault.free(OTHER) == paid && paid + burned == amount);
        assert(burned - paid <= 1 && vault.burned() == burned && _remaining(lock) == 0);
    }

    /// @dev A conviction pays reward and restitution out of the stake and empties the escrow but for what is kept.
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

    /// @dev Deposits, and locks a part: a call that reverts proves nothing and is left out.
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
