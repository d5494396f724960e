// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Refusals} from "../../src/libraries/Refusals.sol";
import {IToken, IVault, Production} from "../harness/Production.sol";
import {FalseToken, FeeToken, HollowToken, ReenteringToken} from "./EvilTokens.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";

/// @title Deposits, locks and slashes; hostile tokens.
contract StakeVaultTest is Production {
    IToken private token;
    IVault private vault;
    address private market = makeAddr("market");
    address private board = makeAddr("board");
    address private game = makeAddr("game");
    address private commitments = makeAddr("commitments");
    address private looks = makeAddr("looks");
    address private juries = makeAddr("juries");
    address private owner = makeAddr("owner");
    address private submitter = makeAddr("submitter");
    address private other = makeAddr("other");
    uint256 private constant MAX_LOCK = (1 << 94) - 1;

    function setUp() public {
        vm.warp(1000);
        vm.etch(market, hex"00");
        vm.etch(board, hex"00");
        vm.etch(game, hex"00");
        vm.etch(commitments, hex"00");
        vm.etch(looks, hex"00");
        vm.etch(juries, hex"00");
        token = _newToken();
        vault = _vault(token);
    }

    // ------------------------------------------------------------------ initialise

    function test_initialise_again_reverts() public {
        vm.expectRevert(Refusals.AlreadyInitialised.selector);
        vault.initialise(market, board, game, commitments, looks, juries);
    }

    function test_initialise_byStranger_reverts() public {
        IVault fresh = _newVault(token);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(this), owner));
        vm.prank(owner);
        fresh.initialise(market, board, game, commitments, looks, juries);
    }

    function test_initialise_withoutCode_reverts() public {
        IVault fresh = _newVault(token);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, other));
        fresh.initialise(market, board, other, commitments, looks, juries);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, other));
        fresh.initialise(market, board, game, other, looks, juries);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, other));
        fresh.initialise(market, board, game, commitments, other, juries);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, other));
        fresh.initialise(market, board, game, commitments, looks, other);
    }

    function test_constructor_noToken_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoCode.selector, other));
        _newVault(IERC20(other));
    }

    // ------------------------------------------------------------------ deposit, withdraw

    function testFuzz_deposit_creditsArrived_succeeds(uint256 amount) public {
        amount = bound(amount, 1, type(uint256).max);
        _deposit(amount);
        assertEq(vault.free(owner), amount);
        assertEq(token.balanceOf(address(vault)), amount);
        assertEq(vault.token(), address(token));
    }

    function test_deposit_nothing_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingArrived.selector, 0));
        vault.deposit(0);
    }

    function testFuzz_withdraw_part_succeeds(uint256 amount, uint256 part) public {
        amount = bound(amount, 1, type(uint256).max);
        part = bound(part, 0, amount);
        _deposit(amount);
        vm.prank(owner);
        vault.withdraw(part);
        assertEq(vault.free(owner), amount - part);
        assertEq(token.balanceOf(owner), part);
    }

    function testFuzz_withdraw_tooMuch_reverts(uint256 amount, uint256 more) public {
        amount = bound(amount, 1, type(uint256).max - 1);
        more = bound(more, amount + 1, type(uint256).max);
        _deposit(amount);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotEnoughFree.selector, owner, more, amount));
        vm.prank(owner);
        vault.withdraw(more);
    }

    // ------------------------------------------------------------------ locks

    function testFuzz_lock_paysBurnsReleases_succeeds(uint96 amount, uint256 paid, uint256 burnt) public {
        amount = uint96(bound(amount, 0, MAX_LOCK));
        _deposit(uint256(amount) + 1);
        vm.startPrank(market);
        uint256 id = vault.lock(owner, amount);
        assertEq(vault.free(owner), 1);
        uint256 first = vault.pay(id, other, paid);
        assertEq(first, paid < amount ? paid : amount);
        uint256 second = vault.burn(id, burnt);
        assertEq(second, burnt < amount - first ? burnt : amount - first);
        uint256 third = vault.release(id, type(uint256).max);
        assertEq(first + second + third, amount);
        assertEq(vault.free(other), first);
        assertEq(vault.burned(), second);
        assertEq(vault.free(owner), third + 1);
        assertEq(token.balanceOf(address(vault)), vault.free(owner) + vault.free(other) + vault.burned());
        (address lockOwner, address module, uint256 remaining) = vault.lockOf(id);
        assertEq(lockOwner, address(0));
        assertEq(module, address(0));
        assertEq(remaining, 0);
    }

    function testFuzz_releaseBut_keeps_succeeds(uint96 amount, uint256 kept) public {
        amount = uint96(bound(amount, 0, MAX_LOCK));
        _deposit(uint256(amount) + 1);
        vm.startPrank(market);
        uint256 id = vault.lock(owner, amount);
        uint256 left = kept < amount ? kept : amount;
        assertEq(vault.releaseBut(id, kept), amount - left);
        (,, uint256 remaining) = vault.lockOf(id);
        assertEq(remaining, left);
        assertEq(vault.free(owner), amount - left + 1);
    }

    /// @dev Each operation takes what is left, once; none reverts.
    function test_burn_emptyLock_succeeds() public {
        _deposit(10);
        vm.startPrank(game);
        uint256 id = vault.lock(owner, 10);
        assertEq(vault.burn(id, 11), 10);
        assertEq(vault.burn(id, 1), 0);
        assertEq(vault.pay(id, other, 1), 0);
        assertEq(vault.release(id, 1), 0);
        assertEq(vault.free(owner) + vault.free(other), 0);
        vm.stopPrank();
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotModule.selector, address(this)));
        vault.burn(id, 1);
    }

    function test_lockOf_partlySpent_succeeds() public {
        _deposit(10);
        vm.startPrank(game);
        uint256 id = vault.lock(owner, 10);
        vault.burn(id, 4);
        (address lockOwner, address module, uint256 remaining) = vault.lockOf(id);
        assertEq(lockOwner, owner);
        assertEq(module, game);
        assertEq(remaining, 6);
    }

    function test_lock_notEnough_reverts() public {
        _deposit(10);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotEnoughFree.selector, owner, 11, 10));
        vm.prank(market);
        vault.lock(owner, 11);
    }

    function test_lock_tooMuch_reverts() public {
        _deposit(MAX_LOCK + 1);
        vm.startPrank(board);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.OutOfBounds.selector, "lock", 0, MAX_LOCK, MAX_LOCK + 1)
        );
        vault.lock(owner, MAX_LOCK + 1);
        uint256 id = vault.lock(owner, MAX_LOCK);
        assertEq(vault.release(id, type(uint256).max), MAX_LOCK);
    }

    /// @dev The reward is paid before the restitution, as far as the lock suffices; the rest stays in it. The
    /// escrow, here of the same owner, is released except for what is kept.
    function testFuzz_slash_paysWhatIsThere_succeeds(
        uint96 stake,
        uint256 reward,
        uint256 restitution,
        uint256 kept
    ) public {
        stake = uint96(bound(stake, 0, MAX_LOCK));
        reward = bound(reward, 0, 2 * uint256(stake));
        restitution = bound(restitution, 0, 2 * uint256(stake));
        _deposit(uint256(stake) + 5);
        vm.startPrank(market);
        uint256 id = vault.lock(owner, stake);
        uint256 escrow = vault.lock(owner, 5);
        assertEq(vault.slash(id, other, reward, submitter, restitution, escrow, kept), stake);
        uint256 left = reward < stake ? stake - reward : 0;
        assertEq(vault.free(other), stake - left);
        uint256 restored = restitution < left ? restitution : left;
        assertEq(vault.free(submitter), restored);
        (,, uint256 remaining) = vault.lockOf(id);
        assertEq(remaining, left - restored);
        assertEq(vault.burned(), 0);
        kept = kept < 5 ? kept : 5;
        assertEq(vault.free(owner), 5 - kept);
        assertEq(vault.slash(id, other, 0, submitter, 0, escrow, 0), remaining);
        assertEq(vault.free(owner), 5);
    }

    /// @dev A bond is locked by the commitments and ends in the game.
    function test_release_lockOfTheCommitments_byTheGame_succeeds() public {
        _deposit(10);
        vm.prank(commitments);
        uint256 id = vault.lock(owner, 10);
        (, address module,) = vault.lockOf(id);
        assertEq(module, game);
        vm.prank(game);
        assertEq(vault.pay(id, other, 4), 4);
        vm.prank(commitments);
        assertEq(vault.burn(id, 1), 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, game, market));
        vm.prank(market);
        vault.release(id, 5);
        vm.prank(game);
        assertEq(vault.release(id, 6), 5);
    }

    /// @dev The bond of an accusation belongs to the looks; the vault does not distinguish them from the
    /// audit board.
    function test_pay_lockOfTheLooks_succeeds() public {
        _deposit(10);
        vm.prank(looks);
        uint256 id = vault.lock(owner, 10);
        (, address module,) = vault.lockOf(id);
        assertEq(module, board);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, board, game));
        vm.prank(game);
        vault.pay(id, other, 10);
        vm.prank(looks);
        assertEq(vault.pay(id, other, 10), 10);
        assertEq(vault.free(other), 10);
    }

    function test_lock_byStranger_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotModule.selector, owner));
        vm.prank(owner);
        vault.lock(owner, 0);
    }

    function test_slash_escrowOfAnotherModule_reverts() public {
        _deposit(10);
        vm.prank(market);
        uint256 id = vault.lock(owner, 4);
        vm.prank(game);
        uint256 escrow = vault.lock(owner, 6);
        vm.prank(market);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, game, market));
        vault.slash(id, other, 1, submitter, 1, escrow, 0);
    }

    function test_lock_otherModules_reverts() public {
        _deposit(10);
        vm.prank(market);
        uint256 id = vault.lock(owner, 10);
        address[5] memory callers = [board, game, commitments, looks, owner];
        for (uint256 i; i < 5; ++i) {
            bytes memory refusal = abi.encodeWithSelector(Refusals.NotAllowed.selector, market, callers[i]);
            vm.startPrank(callers[i]);
            vm.expectRevert(refusal);
            vault.release(id, 1);
            vm.expectRevert(refusal);
            vault.pay(id, callers[i], 1);
            vm.expectRevert(refusal);
            vault.burn(id, 1);
            vm.expectRevert(refusal);
            vault.slash(id, callers[i], 1, callers[i], 1, id, 0);
            vm.expectRevert(refusal);
            vault.releaseBut(id, 1);
            vm.stopPrank();
        }
    }

    function test_lockOf_unknown_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.UnknownLock.selector, 0));
        vault.lockOf(0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.UnknownLock.selector, 1));
        vault.lockOf(1);
        assertEq(vault.locks(), 0);
    }

    // ------------------------------------------------------------------ hostile tokens

    function testFuzz_deposit_feeToken_creditsLess_succeeds(uint128 amount) public {
        amount = uint128(bound(amount, 1, type(uint128).max));
        FeeToken fee = new FeeToken();
        IVault fees = _vault(fee);
        fee.mint(owner, amount);
        vm.startPrank(owner);
        fee.approve(address(fees), amount);
        fees.deposit(amount);
        assertEq(fees.free(owner), amount - amount / 100);
        assertEq(fee.balanceOf(address(fees)), fees.free(owner));
    }

    function test_deposit_falseToken_reverts() public {
        FalseToken token_ = new FalseToken();
        IVault vault_ = _vault(token_);
        token_.mint(owner, 10);
        vm.startPrank(owner);
        token_.approve(address(vault_), 10);
        vault_.deposit(4);
        token_.refuse(true);
        bytes memory failed =
            abi.encodeWithSelector(SafeERC20.SafeERC20FailedOperation.selector, address(token_));
        vm.expectRevert(failed);
        vault_.deposit(6);
        vm.expectRevert(failed);
        vault_.withdraw(4);
        assertEq(vault_.free(owner), 4);
    }

    /// @dev A token that refuses every transfer cannot stop a burn or a payment.
    function test_burn_falseToken_succeeds() public {
        FalseToken token_ = new FalseToken();
        IVault vault_ = _vault(token_);
        token_.mint(owner, 10);
        vm.startPrank(owner);
        token_.approve(address(vault_), 10);
        vault_.deposit(10);
        vm.stopPrank();
        token_.refuse(true);
        vm.startPrank(market);
        uint256 id = vault_.lock(owner, 10);
        assertEq(vault_.burn(id, 4), 4);
        assertEq(vault_.pay(id, other, 6), 6);
    }

    function test_deposit_hollowToken_reverts() public {
        IVault hollow = _vault(IERC20(address(new HollowToken())));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NothingArrived.selector, 5));
        hollow.deposit(5);
    }

    /// @dev Neither a deposit nor a withdrawal can be re-entered from inside a transfer.
    function test_transfers_reentered_succeeds() public {
        ReenteringToken token_ = new ReenteringToken();
        IVault vault_ = _vault(token_);
        token_.mint(owner, 100);
        vm.startPrank(owner);
        token_.approve(address(vault_), 100);
        bytes[2] memory messages =
            [abi.encodeCall(vault_.deposit, (10)), abi.encodeCall(vault_.withdraw, (0))];
        for (uint256 i; i < 2; ++i) {
            token_.arm(vault_, messages[i]);
            vault_.deposit(10);
            assertFalse(token_.entered());
            vault_.withdraw(5);
            assertFalse(token_.entered());
        }
        assertEq(vault_.free(owner), 10);
        assertEq(token_.balanceOf(address(vault_)), 10);
        // The guard caused the revert, not the message: the same call succeeds outside a transfer.
        token_.arm(vault_, "");
        vault_.withdraw(0);
    }

    // ------------------------------------------------------------------ inside

    function _vault(IERC20 token_) private returns (IVault made) {
        made = _newVault(token_);
        made.initialise(market, board, game, commitments, looks, juries);
    }

    function _deposit(uint256 amount) private {
        token.mint(owner, amount);
        vm.startPrank(owner);
        token.approve(address(vault), amount);
        vault.deposit(amount);
        vm.stopPrank();
    }
}
