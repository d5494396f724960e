// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../../src/interfaces/IAuditBoard.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title A verifier that splits into many small ones (attack 26): slots are drawn, not accounts.
contract SmallVerifiersTest is Deployment {
    uint32 private constant SLOTS = 2;

    /// @dev The same seed draws the same slots, whether one account holds them or two do. A small verifier drawn twice
    /// has its duties once, so the same slots carry at least as many duties in pieces as in one.
    function testFuzz_draw_stakeInOneOrInPieces_succeeds(bytes32 mixHash) public {
        uint256 start = vm.snapshotState();
        address whole = makeAddr("whole");
        _fund(whole);
        vm.prank(whole);
        board.register(SLOTS);
        bool wholeDrawn = _drawnAmong(mixHash, whole);
        uint256 slots = board.liveSlots();
        vm.revertToState(start);

        address[] memory pieces = new address[](SLOTS);
        for (uint256 k; k < SLOTS; ++k) {
            pieces[k] = makeAddr(string.concat("piece ", vm.toString(k)));
            _fund(pieces[k]);
            vm.prank(pieces[k]);
            board.register(1);
        }
        assertEq(board.liveSlots(), slots);
        TaskId task = _submitted(1);
        _draw(task, mixHash);
        bool piecesDrawn;
        for (uint256 k; k < SLOTS; ++k) {
            piecesDrawn = piecesDrawn || _has(task, pieces[k]);
        }
        assertEq(piecesDrawn, wholeDrawn);
    }

    function _drawnAmong(bytes32 mixHash, address who) private returns (bool) {
        TaskId task = _submitted(1);
        _draw(task, mixHash);
        return _has(task, who);
    }

    function _has(TaskId task, address who) private view returns (bool) {
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        for (uint256 i; i < duties.length; ++i) {
            if (duties[i].verifier == who) return true;
        }
        return false;
    }
}
