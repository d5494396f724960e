// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Cells} from "../../src/libraries/Cells.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Deployment} from "../market/Deployment.sol";

/// @title The board's functions that only the market, the looks or the juries may call.
contract CallersTest is Deployment {
    function test_reservedFunctions_anyoneElse_revert() public {
        TaskId task = _drawn(1);
        vm.startPrank(rival);
        _expectOnly(address(market));
        board.snapshot(task);
        _expectOnly(address(market));
        board.askFirstDraw(task, 1);
        _expectOnly(address(looks));
        board.caught(task, 0, rival);
        _expectOnly(address(looks));
        board.forfeit(task, 0, rival);
        _expectOnly(address(juries));
        board.forfeit(task, Cells.FIRST_JUROR, rival);
        _expectOnly(address(juries));
        board.askJury(task, 0, 3, 0);
        _expectOnly(address(juries));
        board.endJury(task, true);
        vm.stopPrank();
    }

    function _expectOnly(address due) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.NotAllowed.selector, due, rival));
    }
}
