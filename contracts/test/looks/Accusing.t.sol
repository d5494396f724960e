// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Proofs} from "../../src/libraries/Proofs.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {GameId, SegmentIndex} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Digesting} from "./Digesting.sol";
import {SaltedTree} from "./SaltedTree.sol";

/// @title Who may accuse a seat or look, of which chunk, and what happens to the game that obtained the step
/// tree.
contract AccusingTest is Digesting {
    Spot private whole = Spot(2, 0, 1);
    /// @dev Seconds that each side of a game has. To be changed before `_start`.
    uint32 private clock = TIME;

    function _terms(bytes32 program, bytes32 constantsRoot, bytes32 initialState, uint32 segments)
        internal
        view
        override
        returns (Terms memory terms)
    {
        terms = super._terms(program, constantsRoot, initialState, segments);
        (terms.clock, terms.replayAllowance) = (clock, 0);
    }

    // ------------------------------------------------------------------ the chunk

    /// @dev Every selected chunk of every state: whole and short ones; of the first state, an inner one and
    /// the last.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_accuse_anySelected_succeeds(uint8 step, uint8 chunk, uint8 thinning_) public {
        thinning = uint8(1 << thinning_ % 3);
        Spot memory spot = chunk % 4 == 3 ? Spot(step % 5, 1, 0) : Spot(step % 5, 0, chunk % 4);
        GameId id = _ready(1);
        Charge memory charge = _chargeOf(32, id, spot);
        address looker = _account(32);
        bytes32 leaf = SaltedTree.leaf(charge.salt, charge.proof.chunk);
        if ((charge.place.turns + spot.step) % thinning != 0) {
            vm.expectRevert(
                abi.encodeWithSelector(Refusals.NotSelected.selector, charge.place.turns, spot.step, thinning)
            );
            _accuseWith(32, charge);
            return;
        }
        uint64 until = uint64(vm.getBlockTimestamp()) + MOVE_TIME;
        ILooks.Accusation memory due = ILooks.Accusation(charge.place, leaf, charge.root);
        vm.expectEmit();
        emit ILooks.Accused(task, 32, due, until);
        _accuseWith(32, charge);
        ILooks.Look memory entry = looks.lookOf(task, 32);
        assertEq(entry.accused, keccak256(abi.encode(due)));
        assertEq(entry.until, until);
        assertEq(entry.accusations, 1);
        assertEq(entry.game, 0);
        assertEq(_remaining(entry.lock), GAME_COST);
        assertEq(looks.openAccusations(task), 1);
        assertEq(looks.answersUntil(task), until);
        // The solver gets its cost from the bond of the game; the accusation locks the same amount again.
        assertEq(_free(looker), FUNDS - SEAT_STAKE + SEAT_FEE - 2 * uint256(GAME_COST));
    }

    function test_accuse_wrongProof_reverts() public {
        GameId id = _ready(1);
        Charge memory charge = _chargeOf(32, id, whole);
        charge.proof.chunk[0] = ~charge.proof.chunk[0];
        _refused(charge, Refusals.WrongRoot.selector);
        charge = _chargeOf(32, id, whole);
        charge.proof.path[0] = keccak256("another");
        _refused(charge, Refusals.WrongRoot.selector);
        charge = _chargeOf(32, id, whole);
        charge.proof.tensor.path[0] = keccak256("another");
        _refused(charge, Refusals.WrongRoot.selector);
        charge = _chargeOf(32, id, whole);
        charge.proof.state.path[0] = keccak256("another");
        _refused(charge, Refusals.WrongRoot.selector);
        // Trees that match each other, but are not under the step tree.
        charge = _chargeOf(32, id, whole);
        forged = _numberOf(_segmentOf(32), 2);
        charge.proof = _proofOf(_segmentOf(32), whole);
        forged = 0;
        charge.proof.state.path = _chargeOf(32, id, whole).proof.state.path;
        _refused(charge, Refusals.WrongRoot.selector);
        _accuse(32, id, whole);
    }

    function test_accuse_wrongPlace_reverts() public {
        GameId id = _ready(1);
        Charge memory charge = _chargeOf(32, id, whole);
        charge.place.step = 3;
        _refused(charge, Refusals.WrongRoot.selector);
        charge.place.step = 5;
        _refused(charge, Rfc9162.NotANode.selector);
        charge = _chargeOf(32, id, whole);
        charge.place.tensor = 1;
        _refused(charge, Refusals.WrongRoot.selector);
        charge.place.tensor = 2;
        _refused(charge, Rfc9162.NotANode.selector);
        charge = _chargeOf(32, id, whole);
        charge.place.turns = 0;
        _refused(charge, Refusals.WrongRoot.selector);
        charge.place.turns = 4;
        _refused(charge, Refusals.OutOfBounds.selector);
        charge = _chargeOf(32, id, whole);
        charge.place.depth = 1;
        _refused(charge, Rfc9162.ProofLength.selector);
        charge.place.depth = 3;
        _refused(charge, Rfc9162.ProofLength.selector);
        // An empty chunk in place of a tensor's only one.
        charge = _chargeOf(32, id, Spot(2, 1, 0));
        charge.proof.chunk = "";
        _refused(charge, Refusals.WrongRoot.selector);
        _accuse(32, id, whole);
    }

    // ------------------------------------------------------------------ who, and when

    function test_accuse_byAnother_reverts() public {
        GameId id = _ready(1);
        Charge memory charge = _chargeOf(32, id, whole);
        address[3] memory others = [anyone, _account(0), solver];
        for (uint256 k; k < 3; ++k) {
            vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, _account(32), others[k]));
            vm.prank(others[k]);
            looks.accuse(task, 32, charge.game, charge.salt, charge.root, charge.place, charge.proof);
        }
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), charge.looker));
        vm.prank(charge.looker);
        looks.accuse(task, 33, charge.game, charge.salt, charge.root, charge.place, charge.proof);
    }

    /// @dev A look must have attested; otherwise it could lock its bond and stay silent, and another account
    /// would get the look.
    function test_accuse_notAttested_reverts() public {
        _looked(1);
        _reveal(32);
        GameId id = _openGame(32);
        Charge memory charge = _chargeOf(32, id, whole);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAttested.selector, task, 32));
        _accuseWith(32, charge);
    }

    function test_accuse_notRevealed_reverts() public {
        _looked(3);
        _attest(32);
        Charge memory charge = _chargeOf(32, NONE, whole);
        _refused(charge, Refusals.NotRevealed.selector);
        _reveal(32);
        _reveal(33);
        charge.salt = keccak256("another");
        _refused(charge, Refusals.NotRevealed.selector);
        charge = _chargeOf(32, NONE, whole);
        charge.root = _segmentRoot(0, _segmentOf(33));
        _refused(charge, Refusals.NotRevealed.selector);
    }

    /// @dev Nobody requested the tree from the solver, or it has not answered yet.
    function test_accuse_noStepTree_reverts() public {
        _looked(1);
        _reveal(32);
        _attest(32);
        _drawPicks(0);
        SegmentIndex segment = SegmentIndex.wrap(_segmentOf(32));
        Charge memory charge = _chargeOf(32, NONE, whole);
        bytes memory refusal =
            abi.encodeWithSelector(Refusals.NotRequested.selector, Proofs.stepsKey(task, segment));
        vm.expectRevert(refusal);
        _accuseWith(32, charge);
        GameId id = _challengeBy(_account(32), _segmentOf(32));
        vm.expectRevert(refusal);
        _accuseWith(32, charge);
        _expand(_segmentOf(32));
        charge.game = id;
        _accuseWith(32, charge);
    }

    /// @dev A look has one accusation at a time, and five in all.
    function test_accuse_fiveTimes_succeeds() public {
        GameId id = _ready(1);
        for (uint256 n = 1; n <= 5; ++n) {
            _accuse(32, n == 1 ? id : NONE, whole);
            assertEq(looks.lookOf(task, 32).accusations, n);
            Charge memory again = _chargeOf(32, NONE, whole);
            _refused(again, Refusals.AlreadyAccused.selector);
            _answer(32, whole);
            assertEq(looks.openAccusations(task), 0);
        }
        Charge memory charge = _chargeOf(32, NONE, whole);
        vm.expectRevert(abi.encodeWithSelector(Refusals.LimitReached.selector, 5, 5));
        _accuseWith(32, charge);
    }

    /// @dev Seat 0 has revealed to look 32, and has lost its lock because it did not reveal to look 33.
    function _caughtByAnotherLook() private {
        _looked(3);
        _reveal(32);
        _attestSlots(1, 3);
        _drawPicks(0);
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        looks.takeUnrevealed(task, 33);
    }

    /// @dev A seat that has already lost its lock has nothing more to lose.
    function test_accuse_caughtSeat_reverts() public {
        _caughtByAnotherLook();
        GameId id = _openGame(32);
        Charge memory charge = _chargeOf(32, id, whole);
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyCaught.selector, task, 0));
        _accuseWith(32, charge);
    }

    /// @dev A look whose seat has already lost its lock drops its game for a game's cost, as an accusation
    /// would, and the task can be settled.
    function test_drop_caughtSeat_succeeds() public {
        _looked(12);
        _reveal(34);
        _attestSlots(1, 12);
        _drawPicks(0);
        GameId id = _openGame(34);
        address looker = _account(34);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotCaught.selector, task, 1));
        vm.prank(looker);
        looks.drop(task, 34, id);
        _reach(uint256(_audit().pickedAt) + MOVE_TIME + 1);
        looks.takeUnrevealed(task, 35);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, looker, anyone));
        vm.prank(anyone);
        looks.drop(task, 34, id);
        uint256 had = _free(looker);
        uint256 solverHad = _free(solver);
        vm.prank(looker);
        looks.drop(task, 34, id);
        _assertVerdict(id, IDisputeGame.Verdict.Dropped);
        assertEq(_free(looker), had + BOND - GAME_COST);
        assertEq(_free(solver), solverHad + GAME_COST);
        _settle();
    }

    function test_accuse_convicted_reverts() public {
        GameId id = _ready(1);
        Charge memory charge = _chargeOf(32, id, whole);
        _timeOut(_challengeBy(second, _segmentOf(32) == 1 ? 2 : 1));
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        _accuseWith(32, charge);
    }

    function test_accuse_noFunds_reverts() public {
        GameId id = _ready(1);
        address looker = _account(32);
        uint256 all = _free(looker);
        vm.prank(looker);
        vault.withdraw(all);
        Charge memory charge = _chargeOf(32, NONE, whole);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotEnoughFree.selector, looker, GAME_COST, 0));
        _accuseWith(32, charge);
        // With the game's bond it is possible.
        charge.game = id;
        _accuseWith(32, charge);
    }

    // ------------------------------------------------------------------ the game

    /// @dev The solver gets a game's cost, the look the rest of its bond, and no game is open any more.
    function test_drop_succeeds() public {
        GameId id = _ready(1);
        uint256[2] memory had = [_free(solver), _free(_account(32))];
        assertEq(market.taskOf(task).openGames, 1);
        vm.expectEmit();
        emit IDisputeGame.Ended(id, IDisputeGame.Verdict.Dropped, solver);
        _accuse(32, id, whole);
        _assertVerdict(id, IDisputeGame.Verdict.Dropped);
        assertEq(_free(solver), had[0] + GAME_COST);
        assertEq(_free(_account(32)), had[1] + BOND - 2 * uint256(GAME_COST));
        assertEq(game.gameOf(id).bond, 0);
        assertEq(market.taskOf(task).openGames, 0);
        assertEq(commitments.held(task), 0);
        assertEq(vault.burned(), 0);
        // A dropped game does not count as having spoken up.
        _timeOut(_challengeBy(second, _segmentOf(32) == 1 ? 2 : 1));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotOfSeat.selector, task, 32, id));
        commitments.compensate(task, 32, id);
    }

    /// @dev A waiting game takes the place of a dropped one.
    function test_drop_freesThePlace_succeeds() public {
        GameId id = _ready(1);
        uint256 segment = _segmentOf(32) == 1 ? 2 : 1;
        GameId last;
        for (uint256 k; k < 16; ++k) {
            last = _challengeBy(second, segment);
        }
        assertEq(game.gameOf(last).deadline, type(uint64).max);
        _accuse(32, id, whole);
        assertEq(game.gameOf(last).deadline, vm.getBlockTimestamp() + TIME);
    }

    /// @dev Another account's game on the segment, with lower priority: it is rewarded when it convicts.
    function test_drop_leavesTheRewardToOthers_succeeds() public {
        GameId id = _ready(1);
        GameId other = _challengeBy(second, _segmentOf(32));
        uint256 had = _free(second);
        _accuse(32, id, whole);
        _selectStep(other, 32, 1);
        _timeOut(other);
        _assertVerdict(other, IDisputeGame.Verdict.SolverSilent);
        assertEq(_free(second), had + BOND + REWARD);
    }

    function test_drop_anothersGame_reverts() public {
        GameId id = _ready(1);
        Charge memory charge = _chargeOf(32, id, whole);
        address looker = _account(32);
        // A game of another account, on the segment.
        charge.game = _challengeBy(second, _segmentOf(32));
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, second, looker));
        _accuseWith(32, charge);
        // The look's own game, on another segment.
        uint256 segment = _segmentOf(32) == 1 ? 2 : 1;
        charge.game = _challengeBy(looker, segment);
        vm.expectRevert(Refusals.NotYourTurn.selector);
        _accuseWith(32, charge);
        _expand(segment);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, looker, looker));
        _accuseWith(32, charge);
        charge.game = GameId.wrap(99);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NoSuchGame.selector, 99));
        _accuseWith(32, charge);
        charge.game = id;
        _accuseWith(32, charge);
    }

    /// @dev Once a step is selected, the game is about that step and cannot be dropped.
    function test_drop_laterPhase_reverts() public {
        GameId id = _ready(1);
        Charge memory charge = _chargeOf(32, id, whole);
        _selectStep(id, 32, 2);
        vm.expectRevert(
            abi.encodeWithSelector(
                Refusals.WrongPhase.selector, IDisputeGame.Phase.Step, IDisputeGame.Phase.Frame
            )
        );
        _accuseWith(32, charge);
    }

    /// @dev A look has a move time to drop its game, from when the step tree was posted. Otherwise it could
    /// hold the solver's payment for a whole clock at a game's cost. Later it can still accuse, but loses the
    /// bond of the game like any challenger that is silent.
    function test_drop_late_reverts() public {
        GameId id = _ready(1);
        Charge memory charge = _chargeOf(32, id, whole);
        uint256 until = vm.getBlockTimestamp() + MOVE_TIME;
        assertLt(until, game.gameOf(id).deadline);
        _dropsUntil(charge, until);
    }

    function test_drop_lateAfterALateStepTree_reverts() public {
        _looked(1);
        _reveal(32);
        _attestSlots(1, 1);
        _drawPicks(0);
        GameId id = _challengeBy(_account(32), _segmentOf(32));
        _reach(game.gameOf(id).deadline);
        _expand(_segmentOf(32));
        _dropsUntil(_chargeOf(32, id, whole), vm.getBlockTimestamp() + MOVE_TIME);
    }

    /// @dev The step tree was posted for another game. The time of a waiting game begins with its place.
    function test_drop_lateAfterWaiting_reverts() public {
        _looked(1);
        _reveal(32);
        _attestSlots(1, 1);
        _drawPicks(0);
        GameId first = _challengeBy(second, _segmentOf(32));
        for (uint256 k = 1; k < 16; ++k) {
            _challengeBy(second, _segmentOf(32));
        }
        GameId id = _challengeBy(_account(32), _segmentOf(32));
        _expand(_segmentOf(32));
        Charge memory charge = _chargeOf(32, id, whole);
        vm.expectRevert(abi.encodeWithSelector(Refusals.GameWaits.selector, id));
        _accuseWith(32, charge);
        _timeOut(first);
        _dropsUntil(charge, vm.getBlockTimestamp() + MOVE_TIME);
    }

    /// @dev The clock may be shorter than a move time.
    function test_drop_afterTheClock_reverts() public {
        clock = MOVE_TIME - 1;
        GameId id = _ready(1);
        _dropsUntil(_chargeOf(32, id, whole), game.gameOf(id).deadline);
    }

    /// @dev The look plays for a whole clock before it names the segment. Its turns count together.
    function test_drop_blindLate_reverts() public {
        _looked(1);
        _reveal(32);
        _attestSlots(1, 1);
        _drawPicks(0);
        address looker = _account(32);
        uint32 segment = _segmentOf(32);
        bytes32 salt = _commit(task, UNKNOWN, looker);
        vm.prank(looker);
        GameId id = game.challengeBlind(task, salt);
        uint256 until = vm.getBlockTimestamp() + MOVE_TIME;
        _reach(game.gameOf(id).deadline - 1);
        bytes32 head = _head(id);
        (Leaf memory before, Leaf memory afterwards) =
            (_leaf(checkpoints, segment - 1), _leaf(checkpoints, segment));
        vm.prank(looker);
        game.selectSegment(id, head, SegmentIndex.wrap(segment), before, afterwards);
        _expand(segment);
        assertLt(until, vm.getBlockTimestamp());
        assertGe(game.gameOf(id).deadline, vm.getBlockTimestamp());
        Charge memory charge = _chargeOf(32, id, whole);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, vm.getBlockTimestamp()));
        _accuseWith(32, charge);
    }

    function test_drop_lateCaughtSeat_reverts() public {
        _caughtByAnotherLook();
        GameId id = _openGame(32);
        uint256 until = vm.getBlockTimestamp() + MOVE_TIME;
        address looker = _account(32);
        _reach(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        vm.prank(looker);
        looks.drop(task, 32, id);
    }

    /// @dev A look needs one step tree, so it drops one game, also when it may accuse again.
    function test_accuse_secondGame_reverts() public {
        GameId id = _ready(1);
        _accuse(32, id, whole);
        assertTrue(looks.lookOf(task, 32).dropped);
        _answer(32, whole);
        GameId again = _challengeBy(_account(32), _segmentOf(32));
        Charge memory charge = _chargeOf(32, again, whole);
        vm.expectRevert(abi.encodeWithSelector(Refusals.LimitReached.selector, 1, 1));
        _accuseWith(32, charge);
        _accuse(32, NONE, whole);
    }

    function test_drop_byStranger_reverts() public {
        GameId id = _ready(1);
        SegmentIndex segment = SegmentIndex.wrap(_segmentOf(32));
        address looker = _account(32);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(looks), looker));
        vm.prank(looker);
        game.drop(id, task, segment, looker, 0, 0);
    }

    // ------------------------------------------------------------------ inside

    /// @dev The look's game can be dropped in second `until`, and not in the next one; an accusation without
    /// the game is still possible then.
    function _dropsUntil(Charge memory charge, uint256 until) private {
        GameId id = charge.game;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        _accuseWith(32, charge);
        uint256 before = vm.snapshotState();
        charge.game = NONE;
        _accuseWith(32, charge);
        vm.revertToState(before);
        charge.game = id;
        vm.warp(until);
        _accuseWith(32, charge);
        _assertVerdict(id, IDisputeGame.Verdict.Dropped);
    }

    function _refused(Charge memory charge, bytes4 reason) private {
        vm.expectPartialRevert(reason);
        _accuseWith(32, charge);
    }
}
