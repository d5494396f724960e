// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {ILooks} from "../../src/interfaces/ILooks.sol";
import {ITaskMarket} from "../../src/interfaces/ITaskMarket.sol";
import {GameId, SegmentIndex, TaskId} from "../../src/types/Ids.sol";
import {Seat} from "../../src/types/Seats.sol";
import {SaltedTree} from "../looks/SaltedTree.sol";
import {LooksHandler} from "./LooksHandler.sol";

/// @title Accusations by looks, true and false, and their ends. Games are mocked at the game's address.
abstract contract AccusationsHandler is LooksHandler {
    mapping(TaskId task => mapping(uint256 look => uint32)) private _steps;
    /// @dev Number of the games with which accused accounts contested.
    uint64 private _games;

    /// @notice A look of an account that is not honest accuses a chunk of state 0 or 1, whether or not the
    /// accused has another there.
    function accuse(uint256 seed) public action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        (uint256[] memory numbers, Seat[] memory found) = board.looksOf(task);
        for (uint256 i; i < numbers.length; ++i) {
            uint256 k = (seed % numbers.length + i) % numbers.length;
            ILooks.Look memory entry = looks.lookOf(task, numbers[k]);
            if (!found[k].attested || honest[found[k].account] || entry.revealed == 0) continue;
            if (entry.accused != 0 || entry.accusations == 5) continue;
            if (board.seatOf(task, _lookedAt(task, numbers[k])).caught) continue;
            uint256 dropped = entry.dropped ? 0 : seed >> 16 & 1;
            return _accuse(task, numbers[k], found[k].account, uint32(seed >> 8) % 2, dropped);
        }
    }

    function answer(uint256 seed) public action {
        (TaskId task, uint256 look) = _accusedLook(seed, true);
        if (look == 0 || _lies(task, _lookedAt(task, look)) && _placeOf(task, look).step == 1) return;
        if (vm.getBlockTimestamp() <= looks.lookOf(task, look).until) _answer(task, look);
    }

    /// @notice The accused account contests with its own game, which continues until somebody wants the lock.
    function contest(uint256 seed) public action {
        (TaskId task, uint256 look) = _accusedLook(seed, true);
        ILooks.Look memory entry = looks.lookOf(task, look);
        if (look == 0 || entry.game != 0 || vm.getBlockTimestamp() > entry.until) return;
        address account = _accountOf(task, _lookedAt(task, look));
        _mockGame(++_games, task, account, IDisputeGame.Phase.Segment);
        vm.prank(account);
        looks.contest(task, look, GameId.wrap(_games));
        ++done["contest"];
    }

    function takeUnanswered(uint256 seed) public action {
        (TaskId task, uint256 look) = _accusedLook(seed, true);
        if (look == 0) return;
        _reach(uint64(looks.lookOf(task, look).until) + 1);
        ILooks.Look memory entry = looks.lookOf(task, look);
        // An honest account has answered by now.
        if (entry.accused == 0) return;
        address account = _accountOf(task, _lookedAt(task, look));
        if (entry.game != 0) _mockGame(entry.game, task, account, IDisputeGame.Phase.Closed);
        looks.takeUnanswered(task, look);
        ++done["takeUnanswered"];
    }

    function closeMoot(uint256 seed) public action {
        (TaskId task, uint256 look) = _accusedLook(seed, false);
        if (look == 0) return;
        looks.closeMoot(task, look);
        ++done["closeMoot"];
    }

    /// @notice A look drops its game because another look has already taken the lock it was after.
    function dropGame(uint256 seed) external action {
        (TaskId task,) = _find(seed, ITaskMarket.Status.Submitted);
        (uint256[] memory numbers, Seat[] memory found) = board.looksOf(task);
        for (uint256 i; i < numbers.length; ++i) {
            if (honest[found[i].account] || !_mayDrop(task, numbers[i])) continue;
            return _drop(task, numbers[i], found[i].account, "dropGame");
        }
    }

    // ------------------------------------------------------------------ inside

    /// @dev Nobody is left whom the look could accuse, and it has not dropped a game.
    function _mayDrop(TaskId task, uint256 look) internal view returns (bool) {
        if (looks.lookOf(task, look).dropped) return false;
        return market.statusOf(task) == ITaskMarket.Status.Unpaid
            || board.seatOf(task, _lookedAt(task, look)).caught;
    }

    function _drop(TaskId task, uint256 look, address account, bytes32 name) internal {
        _mockDrop();
        vm.prank(account);
        looks.drop(task, look, GameId.wrap(1));
        ++done[name];
    }

    /// @dev The first accused look, starting from a random task, among tasks that are (or are not) Submitted;
    /// 0 if there is none.
    function _accusedLook(uint256 seed, bool submitted) internal view returns (TaskId task, uint256 look) {
        uint256 count = market.tasks();
        for (uint256 i; i < count; ++i) {
            task = TaskId.wrap((seed % count + i) % count + 1);
            if (looks.openAccusations(task) == 0) continue;
            if ((market.statusOf(task) == ITaskMarket.Status.Submitted) != submitted) continue;
            (uint256[] memory numbers,) = board.looksOf(task);
            for (uint256 k; k < numbers.length; ++k) {
                if (looks.lookOf(task, numbers[k]).accused != 0) return (task, numbers[k]);
            }
        }
    }

    function _answer(TaskId task, uint256 look) internal {
        uint256 seat = _lookedAt(task, look);
        uint256 segment = board.segmentsOf(task, look)[0];
        ILooks.Place memory place = _placeOf(task, look);
        bytes32[] memory path = new bytes32[](1);
        path[0] = _saltedState(task, seat, segment, 1 - place.step);
        bytes32 leaf = SaltedTree.leaf(_saltOf(task, seat), _chunk(segment - 1 + place.step));
        ILooks.Accusation memory accusation =
            ILooks.Accusation(place, leaf, _segmentRoot(task, seat, segment));
        bytes32[] memory none;
        looks.answer(task, look, accusation, none, none, path);
        ++done["answer"];
    }

    function _accuse(TaskId task, uint256 look, address account, uint32 step, uint256 game_) private {
        uint256 segment = board.segmentsOf(task, look)[0];
        uint256 seat = _lookedAt(task, look);
        (bytes32 salt, bytes32 root) = (_saltOf(task, seat), _segmentRoot(task, seat, segment));
        ILooks.ChunkProof memory proof = _proofOf(segment, step);
        _mockSteps(task, segment);
        if (game_ != 0) _mockDrop();
        vm.prank(account);
        looks.accuse(task, look, GameId.wrap(game_), salt, root, ILooks.Place(step, 0, 0, 0), proof);
        _steps[task][look] = step;
        ++done["accuse"];
    }

    /// @dev The place that the look's open accusation names.
    function _placeOf(TaskId task, uint256 look) private view returns (ILooks.Place memory) {
        return ILooks.Place(_steps[task][look], 0, 0, 0);
    }

    function _mockDrop() private {
        vm.mockCall(game, abi.encodeWithSelector(IDisputeGame.drop.selector), "");
    }

    function _mockGame(uint64 id, TaskId task, address account, IDisputeGame.Phase phase) private {
        IDisputeGame.Game memory played;
        (played.task, played.challenger, played.phase) = (task, account, phase);
        played.segment = SegmentIndex.wrap(1);
        vm.mockCall(game, abi.encodeCall(IDisputeGame.gameOf, (GameId.wrap(id))), abi.encode(played));
    }
}
