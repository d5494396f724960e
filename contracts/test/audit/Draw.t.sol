// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {DrawWords} from "../../src/libraries/DrawWords.sol";
import {Errors} from "../../src/libraries/Errors.sol";
import {SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployment} from "../market/Deployment.sol";
import {BlockHeader} from "@openzeppelin/contracts/utils/BlockHeader.sol";

/// @title Draws from a proved header, missed draws, attestations.
contract DrawTest is Deployment {
    using DrawWords for DrawWords.Stream;

    /// @dev Blocks before a draw's in which resignations change nothing.
    uint256 private constant EPOCH = 32;
    /// @dev EIP-2935: the contract that answers for the last 8,191 blocks, and its code.
    address private constant HISTORY = 0x0000F90827F1C53a10cb7A02335B175320002935;
    bytes private constant HISTORY_CODE =
        hex"3373fffffffffffffffffffffffffffffffffffffffe14604657602036036042575f35600143038111604257611fff81430311604257611fff9006545f5260205ff35b5f5ffd5b5f35611fff60014303065500";

    // ------------------------------------------------------------------ header

    /// @dev The header is one that a real chain made.
    function test_header_ofAnvil_succeeds() public pure {
        assertEq(keccak256(HEADER), HEADER_HASH);
        assertEq(BlockHeader.getPrevRandao(HEADER), HEADER_MIX_HASH);
        assertEq(BlockHeader.getNumber(HEADER), 2);
    }

    function testFuzz_draw_anyMixHash_succeeds(bytes32 mixHash) public {
        TaskId task = _submitted(1);
        _draw(task, mixHash);
        _assertDrawn(task, mixHash, 2);
        assertEq(board.drawnAt(task), block.timestamp);
        assertEq(vault.free(drawer), DRAW_FEE);
    }

    /// @dev Behind the 256 blocks of BLOCKHASH the history contract answers.
    function test_draw_fromHistory_succeeds() public {
        TaskId task = _submitted(1);
        uint64 number = market.taskOf(task).drawBlock;
        vm.etch(HISTORY, HISTORY_CODE);
        vm.roll(uint256(number) + 8191);
        vm.store(HISTORY, bytes32(uint256(number) % 8191), HEADER_HASH);
        vm.prank(drawer);
        board.draw(task, HEADER);
        _assertDrawn(task, HEADER_MIX_HASH, 2);
    }

    function test_draw_otherHeader_reverts() public {
        TaskId task = _submitted(1);
        uint64 number = market.taskOf(task).drawBlock;
        vm.roll(number + 1);
        vm.setBlockhash(number, HEADER_HASH);
        bytes memory forged = _header(keccak256("chosen"));
        vm.expectRevert(
            abi.encodeWithSelector(Errors.WrongHeader.selector, number, HEADER_HASH, keccak256(forged))
        );
        board.draw(task, forged);
    }

    /// @dev Neither in nor before its block is there a hash that a header could be proved by.
    function test_draw_beforeBlock_reverts() public {
        TaskId task = _submitted(1);
        uint64 number = market.taskOf(task).drawBlock;
        bytes memory unknown = abi.encodeWithSelector(Errors.WrongHeader.selector, number, 0, HEADER_HASH);
        vm.expectRevert(unknown);
        board.draw(task, HEADER);
        vm.roll(number);
        vm.expectRevert(unknown);
        board.draw(task, HEADER);
    }

    function test_draw_twice_reverts() public {
        TaskId task = _drawn(1);
        vm.expectRevert(abi.encodeWithSelector(Errors.AlreadyDrawn.selector, task));
        board.draw(task, HEADER);
        vm.expectRevert(abi.encodeWithSelector(Errors.AlreadyDrawn.selector, task));
        board.missed(task);
    }

    function test_draw_training_reverts() public {
        TaskId task = _assigned(1);
        vm.expectRevert(
            abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Training)
        );
        board.draw(task, HEADER);
    }

    /// @dev The window begins again, so that attestations are due before it ends.
    function test_draw_late_succeeds() public {
        TaskId task = _submitted(1);
        vm.warp(market.taskOf(task).challengeUntil + 1000);
        _draw(task, HEADER_MIX_HASH);
        assertEq(market.taskOf(task).challengeUntil, block.timestamp + _terms().challengePeriod);
        _attestAll(task);
        assertTrue(board.satisfied(task));
    }

    // ------------------------------------------------------------------ who is drawn

    /// @dev Who registered after the post is never drawn.
    function testFuzz_draw_lateRegistration_succeeds(bytes32 mixHash) public {
        TaskId task = _submitted(1);
        _fund(challenger);
        vm.prank(challenger);
        board.register(255);
        _draw(task, mixHash);
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        for (uint256 i; i < duties.length; ++i) {
            assertNotEq(duties[i].verifier, challenger);
        }
    }

    function testFuzz_draw_resigned_succeeds(bytes32 mixHash, uint256 ahead) public {
        TaskId task = _submitted(1);
        vm.roll(market.taskOf(task).drawBlock - bound(ahead, EPOCH + 1, DRAW_DELAY));
        vm.prank(verifiers[1]);
        board.resign();
        _draw(task, mixHash);
        _assertDrawn(task, mixHash, 2);
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        for (uint256 i; i < duties.length; ++i) {
            assertNotEq(duties[i].verifier, verifiers[1]);
        }
    }

    /// @dev Nobody can look at the draw and then change it by resigning: not even who proposes the block before its block,
    /// which fixes its mixHash (EIP-4399), or a row of blocks before it.
    function testFuzz_draw_resignedAtTheEnd_succeeds(bytes32 mixHash, uint256 ahead) public {
        TaskId task = _submitted(1);
        uint256 snapshot = vm.snapshotState();
        _draw(task, mixHash);
        bytes memory duties = abi.encode(board.dutiesOf(task));
        vm.revertToState(snapshot);
        vm.roll(market.taskOf(task).drawBlock - bound(ahead, 0, EPOCH));
        vm.prank(verifiers[1]);
        board.resign();
        _draw(task, mixHash);
        assertEq(abi.encode(board.dutiesOf(task)), duties);
    }

    /// @dev With one verifier left of two that have to agree, the draw ends, and the task can only be voided.
    function test_draw_tooFewVerifiers_succeeds() public {
        TaskId task = _submitted(1);
        for (uint256 i = 1; i < 3; ++i) {
            vm.prank(verifiers[i]);
            board.resign();
        }
        _draw(task, HEADER_MIX_HASH);
        _attestAll(task);
        assertFalse(board.satisfied(task));
        vm.warp(market.taskOf(task).challengeUntil + 1);
        market.voidTask(task);
    }

    function test_draw_everyoneResigned_succeeds() public {
        TaskId task = _submitted(1);
        for (uint256 i; i < 3; ++i) {
            vm.prank(verifiers[i]);
            board.resign();
        }
        _draw(task, HEADER_MIX_HASH);
        assertEq(board.dutiesOf(task).length, 0);
        assertFalse(board.satisfied(task));
    }

    /// @dev The greatest draw that terms can ask for: 64 verifiers, or 64 segments.
    function test_draw_greatest_succeeds() public {
        for (uint256 i; i < 100; ++i) {
            address verifier = makeAddr(string(abi.encode("crowd", i)));
            _fund(verifier);
            vm.prank(verifier);
            board.register(2);
        }
        Terms memory terms = _terms();
        (terms.verifiers, terms.segmentsPerVerifier, terms.matches) = (64, 1, 64);
        TaskId task = _assigned(terms, 1);
        _submit(task);
        _draw(task, HEADER_MIX_HASH);
        uint256 used = vm.lastCallGas().gasTotalUsed;
        assertLt(used, 12_000_000);
        uint256 last;
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        for (uint256 i; i < duties.length; ++i) {
            if (SegmentIndex.unwrap(duties[i].segment) == SEGMENTS) ++last;
        }
        assertEq(last, 64);
        _attestAll(task);
        assertTrue(board.satisfied(task));
        vm.warp(market.taskOf(task).challengeUntil + 1);
        market.settle(task);
        assertLt(vm.lastCallGas().gasTotalUsed, 12_000_000);
    }

    // ------------------------------------------------------------------ missed

    function test_missed_raisesSegments_succeeds() public {
        TaskId task = _submitted(1);
        uint64 first = market.taskOf(task).drawBlock;
        vm.roll(uint256(first) + 8192);
        vm.expectEmit();
        emit IAuditBoard.DrawMissed(task, first, 3);
        board.missed(task);
        assertEq(board.missesOf(task), 1);
        assertEq(market.taskOf(task).drawBlock, block.number + DRAW_DELAY);
        _draw(task, HEADER_MIX_HASH);
        _assertDrawn(task, HEADER_MIX_HASH, 3);
    }

    function test_missed_hashKnown_reverts() public {
        TaskId task = _submitted(1);
        uint64 number = market.taskOf(task).drawBlock;
        bytes memory refusal = abi.encodeWithSelector(Errors.DrawStillPossible.selector, task, number);
        vm.expectRevert(refusal);
        board.missed(task);
        vm.roll(number);
        vm.expectRevert(refusal);
        board.missed(task);
        vm.roll(number + 1);
        vm.setBlockhash(number, HEADER_HASH);
        vm.expectRevert(refusal);
        board.missed(task);
    }

    /// @dev The fees that a missed draw adds come out of the solver's price.
    function test_settle_afterMiss_succeeds() public {
        Terms memory terms = _terms();
        (terms.verifiers, terms.segmentsPerVerifier, terms.matches) = (1, 2, 1);
        TaskId task = _assigned(terms, BUDGET);
        _submit(task);
        vm.roll(uint256(market.taskOf(task).drawBlock) + 8192);
        board.missed(task);
        // Looks for a draw that misses segment K: four duties, where the escrow holds fees for three.
        uint256 snapshot = vm.snapshotState();
        for (uint256 i; board.dutiesOf(task).length != 4; ++i) {
            vm.revertToState(snapshot);
            _draw(task, bytes32(i));
        }
        _attestAll(task);
        vm.warp(market.taskOf(task).challengeUntil + 1);
        market.settle(task);
        assertEq(vault.free(solver), FUNDS + BUDGET - FEE);
        assertEq(vault.free(submitter), FUNDS - BUDGET - 3 * FEE - DRAW_FEE);
    }

    // ------------------------------------------------------------------ attest

    function test_attest_byOwner_succeeds() public {
        TaskId task = _drawn(1);
        IAuditBoard.Duty memory duty = board.dutiesOf(task)[0];
        vm.expectEmit();
        emit IAuditBoard.Attested(task, 0, duty.verifier, keccak256("steps"));
        vm.prank(duty.verifier);
        board.attest(task, 0, keccak256("steps"));
        assertTrue(board.dutiesOf(task)[0].attested);
    }

    function test_attest_byStranger_reverts() public {
        TaskId task = _drawn(1);
        address verifier = board.dutiesOf(task)[0].verifier;
        vm.expectRevert(abi.encodeWithSelector(Errors.NotAllowed.selector, verifier, solver));
        vm.prank(solver);
        board.attest(task, 0, 0);
    }

    function test_attest_twice_reverts() public {
        TaskId task = _drawn(1);
        _attest(task, 0);
        address verifier = board.dutiesOf(task)[0].verifier;
        vm.expectRevert(abi.encodeWithSelector(Errors.AlreadyAttested.selector, task, 0));
        vm.prank(verifier);
        board.attest(task, 0, 0);
    }

    function test_attest_late_reverts() public {
        TaskId task = _drawn(1);
        address verifier = board.dutiesOf(task)[0].verifier;
        uint64 until = uint64(block.timestamp) + _terms().attestPeriod;
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(Errors.TooLate.selector, until, until + 1));
        vm.prank(verifier);
        board.attest(task, 0, 0);
    }

    function test_attest_slashed_reverts() public {
        TaskId task = _drawn(1);
        vm.startPrank(game);
        market.gameOpened(task);
        market.convict(task, challenger, 0);
        vm.stopPrank();
        address verifier = board.dutiesOf(task)[0].verifier;
        vm.expectRevert(abi.encodeWithSelector(Errors.WrongStatus.selector, task, ITaskMarket.Status.Slashed));
        vm.prank(verifier);
        board.attest(task, 0, 0);
    }

    function test_attest_unknownDuty_reverts() public {
        TaskId task = _drawn(1);
        uint256 count = board.dutiesOf(task).length;
        vm.expectRevert(abi.encodeWithSelector(Errors.UnknownDuty.selector, task, count, count));
        board.attest(task, count, 0);
    }

    /// @dev Segment K needs A attestations, another segment A or all that were drawn: against a count by hand.
    function testFuzz_satisfied_anyAttestations_succeeds(bytes32 mixHash, uint16 attested) public {
        TaskId task = _submitted(1);
        _draw(task, mixHash);
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        uint256[SEGMENTS + 1] memory drawn;
        uint256[SEGMENTS + 1] memory done;
        for (uint256 i; i < duties.length; ++i) {
            ++drawn[SegmentIndex.unwrap(duties[i].segment)];
            // Two bits for each duty: three of four are attested.
            if ((uint256(attested) >> (i * 2)) & 3 == 0 && i < 8) continue;
            ++done[SegmentIndex.unwrap(duties[i].segment)];
            _attest(task, i);
        }
        bool expected = done[SEGMENTS] >= 2;
        for (uint256 s = 1; s < SEGMENTS; ++s) {
            if (done[s] < 2 && done[s] < drawn[s]) expected = false;
        }
        assertEq(board.satisfied(task), expected);
    }

    // ------------------------------------------------------------------ inside

    /// @dev Draws again by hand: slots 0-1, 2-3, 4-5 belong to the three verifiers; A is 2.
    function _assertDrawn(TaskId task, bytes32 mixHash, uint256 q) private view {
        ITaskMarket.Task memory entry = market.taskOf(task);
        bytes32 seed =
            keccak256(abi.encode(block.chainid, address(board), task, entry.root, entry.drawBlock, mixHash));
        DrawWords.Stream memory stream = DrawWords.start(seed);
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        bool[SEGMENTS + 1][3] memory has;
        uint256 next;
        uint256 people;
        for (uint256 i; i < 3; ++i) {
            uint256 v = _draws(stream);
            if (!has[v][SEGMENTS]) ++people;
            next = _expect(duties, has, next, v, SEGMENTS);
            uint32[] memory segments = stream.distinct(SEGMENTS, q);
            for (uint256 j; j < segments.length; ++j) {
                next = _expect(duties, has, next, v, segments[j]);
            }
        }
        while (people < 2) {
            uint256 v = _draws(stream);
            if (!has[v][SEGMENTS]) ++people;
            next = _expect(duties, has, next, v, SEGMENTS);
        }
        assertEq(duties.length, next);
    }

    /// @dev Verifier 1 may have resigned: its balance then still is in the lock, but no slot is live.
    function _draws(DrawWords.Stream memory stream) private view returns (uint256 v) {
        bool resigned = board.liveSlots() == 4;
        v = stream.below(6) / 2;
        while (resigned && v == 1) v = stream.below(6) / 2;
    }

    function _expect(
        IAuditBoard.Duty[] memory duties,
        bool[SEGMENTS + 1][3] memory has,
        uint256 next,
        uint256 v,
        uint32 segment
    ) private view returns (uint256) {
        if (has[v][segment]) return next;
        has[v][segment] = true;
        assertEq(duties[next].verifier, verifiers[v]);
        assertEq(SegmentIndex.unwrap(duties[next].segment), segment);
        return next + 1;
    }
}
