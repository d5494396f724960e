// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ICommitments} from "../../src/interfaces/ICommitments.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {GameId, TaskId} from "../../src/types/Ids.sol";
import {Leaf} from "../../src/types/Openings.sol";
import {Seated} from "./Seated.sol";

/// @title Priority commitments: who may commit when, what it locks, and what happens to the bond.
contract CommitmentsTest is Seated {
    bytes32 private constant SEALED = keccak256("sealed");
    uint256 private constant SINGLE = 16;

    function setUp() public override {
        super.setUp();
        _begin();
    }

    // ------------------------------------------------------------------ commit

    function test_commit_locksBond_succeeds() public {
        uint256 free = _free(challenger);
        vm.expectEmit(address(commitments));
        emit ICommitments.Committed(task, SEALED, challenger, BOND);
        _seal(challenger, NO_SEAT);
        assertEq(_free(challenger), free - BOND);
        assertEq(commitments.held(task), 1);
    }

    function test_commit_twice_reverts() public {
        _seal(challenger, NO_SEAT);
        vm.expectRevert(abi.encodeWithSelector(Refusals.AlreadyCommitted.selector, SEALED));
        _seal(challenger, NO_SEAT);
    }

    function test_commit_withoutFreeTokens_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotEnoughFree.selector, anyone, BOND, 0));
        _seal(anyone, NO_SEAT);
    }

    /// @dev Copying a commitment from the mempool takes nothing from its owner.
    function test_commit_copied_succeeds() public {
        bytes32 salt = keccak256("salt");
        bytes32 commitment = _commitment(task, own[0], challenger, salt);
        vm.prank(second);
        commitments.commit(task, NO_SEAT, commitment);
        vm.prank(challenger);
        commitments.commit(task, NO_SEAT, commitment);
        vm.roll(vm.getBlockNumber() + 1);
        (Leaf memory first, Leaf memory last) = _around(own[0]);
        bytes32 due = _commitment(task, own[0], second, salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotCommitted.selector, due));
        vm.prank(second);
        game.challenge(task, own[0], salt, first, last);
        vm.prank(challenger);
        assertEq(game.challenge(task, own[0], salt, first, last), GameId.wrap(1));
    }

    function test_commit_unknownTask_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.UnknownTask.selector, 2));
        commitments.commit(TaskId.wrap(2), NO_SEAT, SEALED);
    }

    function test_commit_notSubmitted_reverts() public {
        TaskId other = TaskId.unwrap(task) == 1 ? TaskId.wrap(2) : TaskId.wrap(1);
        beacon.show(
            board.auditOf(task).round, _sign(board.auditOf(task).round), _hints(board.auditOf(task).round)
        );
        vm.prank(submitter);
        market.post(_terms(top.id, keccak256("constants"), checkpoints[0], SEGMENTS));
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, other, ITaskMarket.Status.Bidding)
        );
        commitments.commit(other, NO_SEAT, SEALED);
    }

    function test_commit_windowOver_reverts() public {
        uint64 until = market.taskOf(task).challengeUntil;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooLate.selector, until, until + 1));
        _seal(challenger, NO_SEAT);
        vm.warp(until);
        _seal(challenger, NO_SEAT);
    }

    function test_commit_convicted_reverts() public {
        _convictOn(others, challenger);
        vm.expectRevert(
            abi.encodeWithSelector(Refusals.WrongStatus.selector, task, ITaskMarket.Status.Slashed)
        );
        _seal(second, NO_SEAT);
    }

    function test_commit_foreignSeat_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, holders[1], holders[0]));
        _seal(holders[0], 1);
        uint8[3] memory none = [SEATS, 32, 254];
        for (uint256 k; k < 3; ++k) {
            vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(0), holders[0]));
            _seal(holders[0], none[k]);
        }
    }

    /// @dev A bond opens games on its own task only; otherwise the bond of a cheap task would open games on
    /// others.
    function test_challenge_bondOfAnotherTask_reverts() public {
        TaskId other = task;
        task = _submitted(top.id, keccak256("constants"), checkpoints);
        bytes32 salt = keccak256("salt");
        bytes32 commitment = _commitment(task, own[0], challenger, salt);
        vm.prank(challenger);
        commitments.commit(other, NO_SEAT, commitment);
        _seal(second, NO_SEAT);
        vm.roll(vm.getBlockNumber() + 1);
        (Leaf memory first, Leaf memory last) = _around(own[0]);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotCommitted.selector, commitment));
        vm.prank(challenger);
        game.challenge(task, own[0], salt, first, last);
    }

    function test_open_byStranger_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, address(game), challenger));
        vm.prank(challenger);
        commitments.open(task, own[0], challenger, 0);
    }

    // ------------------------------------------------------------------ the bond

    /// @dev Many accounts hold one commitment or game each.
    function test_bondOf_fromTheSeventeenthOn_doubles_succeeds() public {
        for (uint256 k; k < SINGLE + 6; ++k) {
            uint256 due = k < SINGLE ? BOND : uint256(BOND) << (k + 1 - SINGLE);
            assertEq(commitments.bondOf(task, NO_SEAT, anyone), due);
            address who = _accuser(string.concat("accuser ", vm.toString(k)), due);
            if (k % 2 == 0) _seal(who, NO_SEAT);
            else _challengeBy(who, others);
            assertEq(_free(who), 0);
        }
    }

    /// @dev The single bond applies to a seat's first commitment, and to every commitment on a stalled task,
    /// which others train again.
    function test_bondOf_seatsAndRetrainers_payOne_succeeds() public {
        _hold(SINGLE + 4);
        assertEq(commitments.bondOf(task, NO_SEAT, anyone), uint256(BOND) << 5);
        assertEq(commitments.bondOf(task, 0, holders[0]), BOND);
        _seal(holders[0], 0);
        assertEq(commitments.bondOf(task, 0, holders[0]), uint256(BOND) << 6);
        assertEq(commitments.bondOf(task, 1, holders[1]), BOND);
        vm.warp(vm.getBlockTimestamp() + STALL_PERIOD + 1);
        market.stall(task);
        assertEq(commitments.bondOf(task, NO_SEAT, anyone), BOND);
        assertEq(commitments.bondOf(task, 0, holders[0]), BOND);
    }

    function test_bondOf_forfeitAndDismissal_halve_succeeds() public {
        GameId id = _challengeBy(second, others);
        _hold(SINGLE + 2);
        assertEq(commitments.bondOf(task, NO_SEAT, anyone), uint256(BOND) << 4);
        _expand(others);
        vm.warp(game.gameOf(id).deadline + 1);
        game.timeOut(id);
        assertEq(commitments.bondOf(task, NO_SEAT, anyone), uint256(BOND) << 3);
        vm.warp(vm.getBlockTimestamp() + OPENING_PERIOD);
        for (uint256 k; k < 3; ++k) {
            commitments.forfeit(challenger, bytes32(k));
        }
        assertEq(commitments.bondOf(task, NO_SEAT, anyone), BOND);
        assertEq(commitments.held(task), SINGLE - 1);
    }

    /// @dev For any number that can be held, no bond overflows to a small one.
    function testFuzz_bondOf_anyNumber_succeeds(uint32 held) public {
        // Slot 3 of the contract holds the mapping.
        vm.store(address(commitments), keccak256(abi.encode(task, uint256(3))), bytes32(uint256(held)));
        assertEq(commitments.held(task), held);
        uint256 bond = commitments.bondOf(task, NO_SEAT, anyone);
        uint256 doublings = held < SINGLE ? 0 : held - SINGLE + 1;
        assertEq(bond, uint256(BOND) << (doublings < 96 ? doublings : 96));
    }

    // ------------------------------------------------------------------ forfeit

    function test_forfeit_afterOpeningPeriod_burns_succeeds() public {
        uint256 free = _free(challenger);
        _seal(challenger, NO_SEAT);
        uint64 until = uint64(vm.getBlockTimestamp()) + OPENING_PERIOD;
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(Refusals.TooEarly.selector, until, until));
        commitments.forfeit(challenger, SEALED);
        vm.warp(until + 1);
        vm.expectEmit(address(commitments));
        emit ICommitments.Forfeited(task, SEALED, challenger, BOND);
        vm.prank(anyone);
        commitments.forfeit(challenger, SEALED);
        assertEq(_free(challenger), free - BOND);
        assertEq(vault.burned(), BOND);
        assertEq(commitments.held(task), 0);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotCommitted.selector, SEALED));
        commitments.forfeit(challenger, SEALED);
    }

    /// @dev Once a commitment is opened, its bond belongs to the game.
    function test_forfeit_opened_reverts() public {
        bytes32 salt = _commit(task, others, challenger);
        (Leaf memory first, Leaf memory last) = _around(others);
        vm.prank(challenger);
        game.challenge(task, others, salt, first, last);
        vm.warp(vm.getBlockTimestamp() + OPENING_PERIOD + 1);
        bytes32 commitment = _commitment(task, others, challenger, salt);
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotCommitted.selector, commitment));
        commitments.forfeit(challenger, commitment);
    }

    // ------------------------------------------------------------------ inside

    function _seal(address who, uint8 seat) private {
        vm.prank(who);
        commitments.commit(task, seat, SEALED);
    }

    /// @dev Makes `count` commitments of the challenger.
    function _hold(uint256 count) private {
        for (uint256 k; k < count; ++k) {
            vm.prank(challenger);
            commitments.commit(task, NO_SEAT, bytes32(k));
        }
    }
}
