// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IBeacon} from "../../src/interfaces/IBeacon.sol";
import {Digests} from "../../src/libraries/Digests.sol";
import {DrawWords} from "../../src/libraries/DrawWords.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {TaskId} from "../../src/types/Ids.sol";
import {Audit, Offer, Seat} from "../../src/types/Seats.sol";
import {Terms} from "../../src/types/Terms.sol";
import {Deployed} from "../dispute/Deployed.sol";
import {IToken} from "../harness/Production.sol";

/// @title A drawn task with looks in the whole deployment, and steps through their draws.
/// @notice Tests give most draws their word, those of looks so that they pick what a test wants; only `_draw`
/// uses a signed round. Digests are arbitrary (Digesting.sol has true ones).
abstract contract Looking is Deployed {
    using DrawWords for DrawWords.Stream;

    uint32 internal constant SEGMENTS = 6;
    /// @dev Four times what a game costs.
    uint256 internal constant LOCK = 20 * uint256(UNIT);
    uint256 internal constant DRAW_FEE = UNIT;
    uint32 internal constant MOVE_TIME = 50;
    uint32 internal constant ATTEST_PERIOD = 200;
    /// @dev Time for challenges after the attestations are due.
    uint32 internal constant REST_OF_WINDOW = 200;
    /// @dev 2^2 stake units.
    uint256 internal constant SEAT_STAKE = 200 * uint256(UNIT);

    TaskId internal task;
    bytes32[] internal checkpoints;
    /// @dev In the order of their registration.
    address[] internal accounts;
    address internal drawer = makeAddr("drawer");
    // ---- terms, to be changed before `_start`
    uint16 internal seats = 2;
    uint16 internal each = 2;
    uint16 internal chance = 5_000;
    uint8 internal thinning = 1;

    function setUp() public virtual override {
        super.setUp();
        accounts.push(makeAddr("verifier"));
        _register(11);
    }

    function _register(uint256 count) internal {
        IToken token = IToken(vault.token());
        for (uint256 k; k < count; ++k) {
            address who = makeAddr(string.concat("verifier ", vm.toString(accounts.length)));
            accounts.push(who);
            token.mint(who, FUNDS);
            vm.startPrank(who);
            token.approve(address(vault), FUNDS);
            vault.deposit(FUNDS);
            board.register(
                2, Offer(type(uint64).max, type(uint64).max, type(uint128).max, 0, 0, type(uint32).max)
            );
            vm.stopPrank();
        }
    }

    function _terms(bytes32 program, bytes32 constantsRoot, bytes32 initialState, uint32 segments)
        internal
        view
        virtual
        override
        returns (Terms memory terms)
    {
        terms = super._terms(program, constantsRoot, initialState, segments);
        (terms.verifiers, terms.segmentsPerVerifier) = (seats, each);
        (terms.lookChance, terms.thinning) = (chance, thinning);
        (terms.moveTime, terms.seatLock) = (MOVE_TIME, uint128(LOCK));
    }

    /// @dev Brings the task to the draw of its seats.
    function _start() internal virtual {
        for (uint256 k; k <= SEGMENTS; ++k) {
            checkpoints.push(_checkpoint(k));
        }
        task = _submitted(keccak256("program"), keccak256("constants"), checkpoints);
    }

    function _checkpoint(uint256 number) internal view virtual returns (bytes32) {
        return keccak256(abi.encode("checkpoint", number));
    }

    /// @dev The seats are attested and a draw of looks is requested.
    function _asked() internal {
        _start();
        for (uint256 seat; seat < seats; ++seat) {
            _attest(seat);
        }
    }

    /// @dev The slots of level 1 are drawn.
    function _looked(uint256 slots) internal {
        _asked();
        _drawPicks(slots);
    }

    // ------------------------------------------------------------------ attestations

    function _attest(uint256 number) internal virtual {
        bytes32 saltHash = Digests.saltHash(_saltOf(number));
        vm.prank(_account(number));
        board.attest(task, number, keccak256("digest"), saltHash);
    }

    /// @dev Attests looks of a level.
    function _attestSlots(uint256 level, uint256 slots) internal {
        for (uint256 slot; slots >> slot != 0; ++slot) {
            if (slots >> slot & 1 == 1) _attest(32 * level + slot);
        }
    }

    function _secret(uint256 number) internal pure returns (bytes32) {
        return keccak256(abi.encode("secret", number));
    }

    function _saltOf(uint256 number) internal view returns (bytes32) {
        bytes32 seed = board.auditOf(task).seed;
        return Digests.salt(address(board), task, number, _account(number), seed, _secret(number));
    }

    function _account(uint256 number) internal view returns (address) {
        return board.seatOf(task, number).account;
    }

    /// @dev The seat, or the look of the level below, that the look repeats.
    function _lookedAt(uint256 look) internal view returns (uint256) {
        uint256 slot = look % 32;
        return look < 64 ? slot / each : look - 32;
    }

    /// @dev The informer reveals the salt of the seat, in a later block than its commitment.
    function _inform(uint256 seat, address informer) internal {
        bytes32 salt = _committed(seat, informer);
        vm.prank(informer);
        looks.inform(task, seat, keccak256("digest"), salt);
    }

    function _committed(uint256 seat, address informer) internal returns (bytes32 salt) {
        salt = _saltOf(seat);
        bytes32 commitment = keccak256(abi.encode(block.chainid, address(looks), task, seat, informer, salt));
        vm.prank(informer);
        looks.commitInforming(commitment);
        vm.roll(vm.getBlockNumber() + 1);
    }

    // ------------------------------------------------------------------ draws

    /// @dev Executes the task's first draw of a level with a word that picks these slots.
    function _drawPicks(uint256 slots) internal {
        _drawWith(_wordOf(slots));
    }

    /// @dev Executes the first draw of the queue, which must be the task's, with this word.
    function _drawWith(bytes32 word) internal {
        _reach(beacon.timeOf(board.firstDraw().round));
        MapHints[2] memory hints;
        vm.mockCall(address(beacon), abi.encodeWithSelector(IBeacon.word.selector), abi.encode(word));
        vm.prank(drawer);
        board.draw(task, "", hints);
        vm.clearMockedCalls();
    }

    /// @dev The smallest number that, as a word, picks these slots.
    function _wordOf(uint256 slots) internal view returns (bytes32 word) {
        uint256 candidates = _candidateSlots(board.firstDraw().level);
        while (_picks(_seedOf(word), candidates) != slots) word = bytes32(uint256(word) + 1);
    }

    function _candidateSlots(uint256 level) internal view returns (uint256) {
        return level == 1 ? (1 << seats * each) - 1 : board.auditOf(task).looked;
    }

    function _seedOf(bytes32 word) internal view returns (bytes32) {
        uint8 number = board.firstDraw().number;
        return
            keccak256(abi.encode(block.chainid, address(board), task, market.taskOf(task).root, number, word));
    }

    /// @dev One number below 10,000 for each candidate, until there are as many looks as segments of seats.
    function _picks(bytes32 seed, uint256 candidates) internal view returns (uint256 slots) {
        DrawWords.Stream memory stream = DrawWords.start(seed);
        uint256 room = seats * each - board.auditOf(task).looks;
        for (uint256 slot; slot < 32 && room > 0; ++slot) {
            if (candidates >> slot & 1 == 0) continue;
            if (stream.below(10_000) >= chance) continue;
            slots |= 1 << slot;
            --room;
        }
    }

    function _redraw() internal {
        _reach(uint256(board.auditOf(task).until) + 1);
        board.redraw(task);
    }

    // ------------------------------------------------------------------ time, and what is left

    function _reach(uint256 time) internal {
        if (vm.getBlockTimestamp() < time) vm.warp(time);
    }

    function _settle() internal {
        _reach(uint256(market.taskOf(task).challengeUntil) + 1);
        market.settle(task);
    }

    function _audit() internal view returns (Audit memory) {
        return board.auditOf(task);
    }

    function _remaining(uint256 lock) internal view returns (uint256 remaining) {
        (,, remaining) = vault.lockOf(lock);
    }

    /// @dev The rest of the account's stake.
    function _stakeOf(address account) internal view returns (uint256) {
        return _remaining(board.registrationOf(account).lock);
    }

    function _escrow() internal view returns (uint256) {
        return _remaining(market.taskOf(task).escrow);
    }

    /// @dev Frees every bound account that was drawn for the task, once each; all others are free or
    /// suspended already.
    function _releaseAll() internal {
        for (uint256 number; number < 192; ++number) {
            Seat memory seat = board.seatOf(task, number);
            if (seat.account != address(0) && !seat.caught && !seat.released) board.release(task, number);
        }
        for (uint256 k; k < accounts.length; ++k) {
            bool suspended = board.registrationOf(accounts[k]).suspended;
            assertEq(board.registrationOf(accounts[k]).freeSince == type(uint40).max, suspended);
        }
    }
}
