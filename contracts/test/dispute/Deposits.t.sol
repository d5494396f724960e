// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Node} from "../../src/types/Openings.sol";
import {LeafTree} from "./LeafTree.sol";
import {Play} from "./Play.sol";
import {Errors} from "@openzeppelin/contracts/utils/Errors.sol";

/// @title Refuses payments in the chain's coin.
contract Refuser {}

/// @title Withdraws its credit again while it is being paid.
contract Reenterer {
    receive() external payable {
        if (msg.value != 0 && IDisputeGame(msg.sender).withdrawCredit() != 0) revert("paid twice");
    }
}

/// @title The deposit of a demanded node: its amount, who gets it, and that nobody can block another
/// account's coin.
contract DepositsTest is Play {
    uint256 private constant BASE_FEE = 7 gwei;
    uint64 private constant DATA_FEE = 100 gwei;

    function setUp() public override {
        super.setUp();
        vm.fee(BASE_FEE);
        _start();
    }

    function _dataFee() internal pure override returns (uint64) {
        return DATA_FEE;
    }

    // ------------------------------------------------------------------ what is due

    function test_demand_tooLittle_reverts() public {
        (GameId id, Node[] memory nodes) = _asking();
        uint256 due = _due();
        bytes32 head = _head(id);
        vm.deal(challenger, due);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.DepositTooSmall.selector, due, due - 1));
        game.demand{value: due - 1}(id, head, IDisputeGame.Tree.Step, _none(), 0, 0, nodes);
        assertEq(challenger.balance, due);
        assertEq(address(game).balance, 0);
        _pay(id, nodes, due);
        assertEq(address(game).balance, due);
        assertEq(game.creditOf(challenger), 0);
    }

    /// @dev An excess payment stays the challenger's credit and pays for its next demand.
    function test_demand_change_paysTheNext_succeeds() public {
        (GameId id, Node[] memory nodes) = _asking();
        uint256 due = _due();
        _pay(id, nodes, 2 * due + 5);
        assertEq(game.creditOf(challenger), due + 5);
        _answerAll(id, nodes);
        _pay(id, nodes, 0);
        assertEq(game.creditOf(challenger), 5);
        assertEq(address(game).balance, game.creditOf(solver) + due + 5);
    }

    /// @dev The base fee of the demand's block decides, not the one before or after it.
    function test_demand_baseFeeMoves_succeeds() public {
        (GameId id, Node[] memory nodes) = _asking();
        uint256 estimated = _due();
        vm.fee(BASE_FEE * 9 / 8);
        uint256 due = _due();
        assertGt(due, estimated);
        bytes32 head = _head(id);
        vm.deal(challenger, estimated);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Refusals.DepositTooSmall.selector, due, estimated));
        game.demand{value: estimated}(id, head, IDisputeGame.Tree.Step, _none(), 0, 0, nodes);
        _pay(id, nodes, 2 * estimated);
        vm.fee(100 * BASE_FEE);
        _answerAll(id, nodes);
        assertEq(game.creditOf(solver), due);
        assertEq(game.creditOf(challenger), 2 * estimated - due);
    }

    function testFuzz_depositFor_growsWithEverything_succeeds(uint256 count, uint256 leafBytes, uint256 fee)
        public
        view
    {
        count = bound(count, 1, 16);
        leafBytes = bound(leafBytes, 1, 1024);
        fee = bound(fee, 1, 1e15);
        uint256 deposit = game.depositFor(count, leafBytes, fee);
        assertGt(game.depositFor(count + 1, leafBytes, fee), deposit);
        assertGt(game.depositFor(count, leafBytes + 1, fee), deposit);
        assertGt(game.depositFor(count, leafBytes, fee + 1), deposit);
        // Gas is counted twice, data once.
        uint256 data = game.depositFor(count, leafBytes, 0);
        assertEq(game.depositFor(count, leafBytes, 2 * fee) - data, 2 * (deposit - data));
        assertEq(data % DATA_FEE, 0);
    }

    // ------------------------------------------------------------------ who gets it

    function test_reveal_paysTheSolver_whoeverAnswers_succeeds() public {
        (GameId id, Node[] memory nodes) = _asking();
        _pay(id, nodes, _due());
        uint256 each = game.gameOf(id).deposit;
        assertEq(2 * each, _due());
        vm.prank(anyone);
        game.revealLeaf(id, 1, 0, _named(nodes), abi.encodePacked(steps[1]));
        assertEq(game.creditOf(solver), each);
        assertEq(game.creditOf(anyone), 0);
        game.revealNode(id, 0, 0, _named(nodes), LeafTree.leaves(steps));
        assertEq(game.creditOf(solver), 2 * each);
        vm.expectEmit(address(game));
        emit IDisputeGame.CreditWithdrawn(solver, 2 * each);
        vm.prank(solver);
        assertEq(game.withdrawCredit(), 2 * each);
        assertEq(solver.balance, 2 * each);
        assertEq(game.creditOf(solver), 0);
        assertEq(address(game).balance, 0);
    }

    function test_timeOut_returnsWhatWasNotAnswered_succeeds() public {
        (GameId id, Node[] memory nodes) = _asking();
        _pay(id, nodes, _due());
        uint256 each = game.gameOf(id).deposit;
        game.revealLeaf(id, 1, 0, _named(nodes), abi.encodePacked(steps[1]));
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        assertEq(game.creditOf(challenger), each);
        assertEq(game.creditOf(solver), each);
        assertEq(address(game).balance, 2 * each);
    }

    /// @dev Another game convicts: a moot game returns its deposits along with its bond.
    function test_closeMoot_returnsWhatWasNotAnswered_succeeds() public {
        (GameId moot, Node[] memory nodes) = _asking();
        GameId id = _challengeBy(second, SEGMENT);
        _pay(moot, nodes, _due());
        _selectStepBy(second, id);
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        assertEq(game.creditOf(challenger), 0);
        game.closeMoot(moot);
        assertEq(game.creditOf(challenger), _due());
        vm.expectPartialRevert(Refusals.GameIsClosed.selector);
        game.closeMoot(moot);
        assertEq(address(game).balance, _due());
    }

    /// @dev After an answered demand there is nothing left for the game's end to pay again.
    function test_timeOut_afterAnswers_returnsNothing_succeeds() public {
        (GameId id, Node[] memory nodes) = _asking();
        _pay(id, nodes, _due());
        _answerAll(id, nodes);
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.ChallengerSilent);
        assertEq(game.creditOf(challenger), 0);
        assertEq(game.creditOf(solver), _due());
    }

    // ------------------------------------------------------------------ receivers

    /// @dev Accounts that refuse coin hold up nobody: the moves and the end of the game still work. Such an
    /// account cannot withdraw, and keeps its credit.
    function test_withdrawCredit_refusingReceivers_holdUpNobody_succeeds() public {
        vm.etch(challenger, address(new Refuser()).code);
        vm.etch(solver, address(new Refuser()).code);
        (GameId id, Node[] memory nodes) = _asking();
        _pay(id, nodes, _due() + 5);
        game.revealLeaf(id, 1, 0, _named(nodes), abi.encodePacked(steps[1]));
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        _assertVerdict(id, IDisputeGame.Verdict.SolverSilent);
        uint256 credit = game.creditOf(challenger);
        assertEq(credit, _due() / 2 + 5);
        vm.prank(challenger);
        vm.expectRevert(Errors.FailedCall.selector);
        game.withdrawCredit();
        assertEq(game.creditOf(challenger), credit);
    }

    function test_withdrawCredit_reentered_paysOnce_succeeds() public {
        (GameId id, Node[] memory nodes) = _asking();
        _pay(id, nodes, _due() + 5);
        _answerAll(id, nodes);
        vm.etch(challenger, address(new Reenterer()).code);
        vm.prank(challenger);
        assertEq(game.withdrawCredit(), 5);
        assertEq(challenger.balance, 5);
        assertEq(address(game).balance, game.creditOf(solver));
        // Nothing is left, and nothing was taken from others.
        vm.prank(anyone);
        assertEq(game.withdrawCredit(), 0);
        assertEq(anyone.balance, 0);
    }

    function test_receive_strayCoin_reverts() public {
        vm.deal(anyone, 1);
        vm.prank(anyone);
        (bool taken,) = address(game).call{value: 1}("");
        assertFalse(taken);
    }

    // ------------------------------------------------------------------ parts

    /// @dev A game whose step tree is posted, and two nodes of it: the root and leaf 1.
    function _asking() private returns (GameId id, Node[] memory nodes) {
        id = _challenge();
        _expandSteps();
        bytes32[] memory hashes = LeafTree.leaves(steps);
        nodes = new Node[](2);
        (nodes[0], nodes[1]) = (_node(hashes, 0, hashes.length)[0], _node(hashes, 1, 1)[0]);
    }

    /// @dev The deposits of both nodes at this base fee; the mean is rounded up.
    function _due() private view returns (uint256) {
        uint256 sum = game.depositFor(2, 0, block.basefee) + game.depositFor(2, 32, block.basefee);
        return sum + sum % 2;
    }

    function _pay(GameId id, Node[] memory nodes, uint256 value) private {
        bytes32 head = _head(id);
        vm.deal(challenger, value);
        vm.prank(challenger);
        game.demand{value: value}(id, head, IDisputeGame.Tree.Step, _none(), 0, 0, nodes);
        assertEq(challenger.balance, 0);
    }

    function _answerAll(GameId id, Node[] memory nodes) private {
        game.revealNode(id, 0, 0, _named(nodes), LeafTree.leaves(steps));
        game.revealLeaf(id, 1, 0, _named(nodes), abi.encodePacked(steps[1]));
    }
}
