// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Parameters} from "../../src/types/Parameters.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title Draws soon after the submission, as on a development chain: who resigns from the submission on changes nothing.
contract ShortDelayTest is Deployment {
    uint32 private constant DELAY = 2;

    function _parameters() internal pure override returns (Parameters memory parameters) {
        parameters = super._parameters();
        parameters.drawDelay = DELAY;
    }

    function testFuzz_draw_resignedBeforeSubmission_succeeds(bytes32 mixHash) public {
        TaskId task = _assigned(1);
        vm.prank(verifiers[1]);
        board.resign();
        vm.roll(vm.getBlockNumber() + 1);
        _submit(task);
        _draw(task, mixHash);
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        assertGt(duties.length, 0);
        for (uint256 i; i < duties.length; ++i) {
            assertNotEq(duties[i].verifier, verifiers[1]);
        }
    }

    function testFuzz_draw_resignedSinceSubmission_succeeds(bytes32 mixHash, uint256 ahead) public {
        TaskId task = _submitted(1);
        uint256 snapshot = vm.snapshotState();
        _draw(task, mixHash);
        bytes memory duties = abi.encode(board.dutiesOf(task));
        vm.revertToState(snapshot);
        vm.roll(market.taskOf(task).drawBlock - bound(ahead, 0, DELAY));
        vm.prank(verifiers[1]);
        board.resign();
        _draw(task, mixHash);
        assertEq(abi.encode(board.dutiesOf(task)), duties);
    }
}
