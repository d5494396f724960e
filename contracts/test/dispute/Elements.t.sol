// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IArbiter} from "../../src/interfaces/IArbiter.sol";
import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {Chunks} from "../../src/libraries/Chunks.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {Rfc9162} from "../../src/libraries/Rfc9162.sol";
import {GameId} from "../../src/types/Ids.sol";
import {ChunkOpening, Leaf} from "../../src/types/Openings.sol";
import {Judging} from "./Judging.sol";

/// @title Judging one element: convicts exactly when the bits differ, and accepts only complete proofs.
contract ElementsTest is Judging {
    // ------------------------------------------------------------------ verdicts

    function test_judge_wrongElementInCallee_convicts_succeeds() public {
        // Element 299, in the second and shorter chunk, claims 0x40400001 for 3.0.
        calleeValues[2][4 * 299] = 0x01;
        _start();
        GameId id = _inCallee();
        uint256 free = _free(challenger);
        vm.expectEmit(address(game));
        emit IDisputeGame.Judged(id, 2, 299, 0x40400001, 0x40400000);
        _judge(id, _calleeAdd(299));
        _assertConvicted(id, free);
    }

    function test_judge_wrongConstant_convicts_succeeds() public {
        topValues[4][8 * 16_511] = 0x02;
        _start();
        GameId id = _inTop();
        uint256 free = _free(challenger);
        _judge(id, _topConstant(16_511));
        _assertConvicted(id, free);
    }

    function test_judge_uncanonicalNaN_convicts_succeeds() public {
        // inf + -inf is 0x7fc00000; the solver claims a NaN with a payload.
        for (uint256 k; k < 4; ++k) {
            calleeValues[0][k] = bytes4(0x0000807f)[k];
            calleeValues[1][k] = bytes4(0x000080ff)[k];
            calleeValues[2][k] = bytes4(0x0100c07f)[k];
        }
        _start();
        GameId id = _inCallee();
        uint256 free = _free(challenger);
        _judge(id, _calleeAdd(0));
        _assertConvicted(id, free);
    }

    function test_judge_rightElement_reverts() public {
        calleeValues[2][4 * 299] = 0x01;
        _start();
        GameId id = _inCallee();
        _judgeReverts(
            id, _calleeAdd(0), abi.encodeWithSelector(Refusals.ElementAgrees.selector, uint64(0x40400000))
        );
        _judgeReverts(
            id, _calleeAdd(298), abi.encodeWithSelector(Refusals.ElementAgrees.selector, uint64(0x40400000))
        );
    }

    function testFuzz_judge_everyRightElement_reverts(uint64 element) public {
        element = uint64(bound(element, 0, 299));
        _start();
        GameId id = _inCallee();
        _judgeReverts(
            id,
            _calleeAdd(element),
            abi.encodeWithSelector(Refusals.ElementAgrees.selector, uint64(0x40400000))
        );
    }

    // ------------------------------------------------------------------ ill-formed questions

    function test_judge_elementOutside_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(299);
        j.element = 300;
        _judgeReverts(id, j, abi.encodeWithSelector(IArbiter.ElementOutside.selector, 300, 300));
    }

    function test_judge_elementInAnotherChunk_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(255);
        j.element = 256;
        _judgeReverts(id, j, abi.encodeWithSelector(Refusals.WrongChunk.selector, 1, 0));
    }

    function test_judge_chunkBehindTheEnd_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(299);
        j.chunks[0].index = 2;
        _judgeReverts(id, j, abi.encodeWithSelector(Refusals.WrongLength.selector, 2, 0, 176));
    }

    function test_judge_shortChunk_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(299);
        j.claimed.data = new bytes(175);
        _judgeReverts(id, j, abi.encodeWithSelector(Refusals.WrongLength.selector, 1, 176, 175));
    }

    function test_judge_innerNodeAsChunk_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        // Shaped like the preimage of the value's root: 0x01, left, right. As a chunk it has the wrong length
        // and the wrong tag.
        j.claimed.data = abi.encodePacked(bytes1(0x01), j.claimed.path[0], j.claimed.path[0]);
        _judgeReverts(id, j, abi.encodeWithSelector(Refusals.WrongLength.selector, 0, 1024, 65));
    }

    function test_judge_alteredChunk_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        j.chunks[1].data[5] ^= 0x01;
        _judgeFailsAtRoot(id, j);
    }

    function test_judge_anotherOperandValue_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        (j.operands[0], j.chunks[0]) = (j.operands[1], _chunk(0, calleeValues[1], 0));
        _judgeFailsAtRoot(id, j);
    }

    /// @dev Each operand is proved, not only the first.
    function test_judge_anotherSecondOperandValue_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        (j.operands[1], j.chunks[1]) = (j.operands[0], _chunk(1, calleeValues[0], 0));
        _judgeFailsAtRoot(id, j);
    }

    function test_judge_longPath_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        j.value.path = new bytes32[](4);
        _judgeReverts(id, j, abi.encodeWithSelector(Rfc9162.ProofLength.selector, 1, 4));
    }

    function test_judge_operandCount_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        j.operands = new Leaf[](1);
        _judgeReverts(id, j, abi.encodeWithSelector(Refusals.WrongCount.selector, 2, 1));
    }

    function test_judge_chunkOfNoOperand_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        j.chunks[0].operand = 2;
        _judgeReverts(id, j, abi.encodeWithSelector(Refusals.Malformed.selector));
    }

    function test_judge_missingChunk_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        j.chunks = new ChunkOpening[](0);
        _judgeReverts(id, j, abi.encodeWithSelector(Chunks.ChunkMissing.selector, 0, 0));
    }

    function test_judge_anotherProgram_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        j.instruction = _open(top, 6);
        _judgeReverts(id, j, abi.encodeWithSelector(Refusals.WrongProgram.selector, callee.id, top.id));
    }

    function test_judge_alteredInstruction_reverts() public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        // `sub` instead of `add`.
        j.instruction.data[1] = 0x02;
        _judgeFailsAtRoot(id, j);
    }

    function test_judge_edge_reverts() public {
        _start();
        GameId id = _inTop();
        ElementJudgment memory j = _topConstant(0);
        j.instruction = _open(top, 1);
        j.value = _leaf(topRoots, 1);
        j.claimed = _chunk(0, topValues[1], 0);
        _judgeReverts(id, j, abi.encodeWithSelector(IArbiter.NotAPrimitive.selector, 1));
    }

    function test_judge_longRow_reverts() public {
        _start();
        GameId id = _inTop();
        ElementJudgment memory j = _topConstant(0);
        j.instruction = _open(top, 5);
        j.operands = new Leaf[](1);
        j.value = _leaf(topRoots, 5);
        j.claimed = _chunk(0, topValues[5], 0);
        _judgeReverts(id, j, abi.encodeWithSelector(IArbiter.SplitNeeded.selector, 129));
    }

    /// @dev With any gas limit up to 400,000 the judgment of a right element fails: too little gas never
    /// convicts.
    function testFuzz_judge_tooLittleGas_reverts(uint256 gas_) public {
        _start();
        GameId id = _inCallee();
        ElementJudgment memory j = _calleeAdd(0);
        bytes memory move = abi.encodeCall(
            game.judge, (id, _head(id), j.instruction, j.element, j.operands, j.chunks, j.value, j.claimed)
        );
        gas_ = bound(gas_, 0, 400_000);
        vm.prank(challenger);
        // forge-lint: disable-next-line(unchecked-call)
        (bool done,) = address(game).call{gas: gas_}(move);
        assertFalse(done);
        assertEq(_phase(id), uint256(IDisputeGame.Phase.Frame));
    }

    /// @dev The judgment reverts because some opening does not lead to its root.
    function _judgeFailsAtRoot(GameId id, ElementJudgment memory j) private {
        bytes32 head = _head(id);
        vm.prank(challenger);
        vm.expectPartialRevert(Refusals.WrongRoot.selector);
        game.judge(id, head, j.instruction, j.element, j.operands, j.chunks, j.value, j.claimed);
    }
}
