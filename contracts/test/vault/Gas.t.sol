// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IToken, IVault, Production} from "../harness/Production.sol";
import {Snapshot} from "../harness/Snapshot.sol";

/// @title Gas of depositing tokens in the vault and withdrawing them, for an account that has none there.
contract VaultGasTest is Production, Snapshot {
    IToken private token;
    IVault private vault;
    address private owner = makeAddr("owner");
    address private other = makeAddr("other");

    function setUp() public {
        token = _newToken();
        vault = _newVault(token);
        // The vault holds other accounts' tokens, and the owner keeps some.
        token.mint(other, 1e18);
        token.mint(owner, 2e18);
        vm.startPrank(other);
        token.approve(address(vault), 1e18);
        vault.deposit(1e18);
        vm.stopPrank();
    }

    /// forge-config: default.isolate = true
    function test_gas_matches() public {
        vm.startPrank(owner);
        token.approve(address(vault), 1e18);
        _matches("approve", 60_000);
        vault.deposit(1e18);
        _matches("deposit", 80_000);
        vault.withdraw(5e17);
        _matches("withdraw", 60_000);
    }
}
