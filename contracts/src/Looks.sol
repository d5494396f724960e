// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {IDisputeGame} from "./interfaces/IDisputeGame.sol";
import {ILooks} from "./interfaces/ILooks.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {Cells} from "./libraries/Cells.sol";
import {Digests} from "./libraries/Digests.sol";
import {Proofs} from "./libraries/Proofs.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {Rfc9162} from "./libraries/Rfc9162.sol";
import {GameId, SegmentIndex, TaskId} from "./types/Ids.sol";
import {Seat} from "./types/Seats.sol";

/// @title Looks: who may take a seat's lock because of its attestation (audit.md sections 5 and 6).
contract Looks is ILooks {
    uint256 private constant MAX_ACCUSATIONS = 5;

    /// @dev The number of a task's open accusations, and the last second of the latest answer.
    struct Open {
        uint32 count;
        uint40 until;
    }

    IStakeVault private immutable VAULT;
    ITaskMarket private immutable MARKET;
    IAuditBoard private immutable BOARD;

    /// @inheritdoc ILooks
    /// @dev Per account, so that nobody can use up another account's commitment by copying it.
    mapping(address informer => mapping(bytes32 commitment => uint256)) public committedIn;
    mapping(TaskId task => Open) private _open;
    mapping(TaskId task => mapping(uint256 look => Look)) private _looks;

    constructor(IStakeVault vault, ITaskMarket market, IAuditBoard board) {
        (VAULT, MARKET, BOARD) = (vault, market, board);
    }

    // ------------------------------------------------------------------ informing

    /// @inheritdoc ILooks
    function commitInforming(bytes32 commitment) external {
        if (committedIn[msg.sender][commitment] != 0) revert Refusals.AlreadyCommitted(commitment);
        committedIn[msg.sender][commitment] = block.number;
    }

    /// @inheritdoc ILooks
    function inform(TaskId task, uint256 seat, bytes32 digest, bytes32 salt) external {
        bytes32 commitment = keccak256(abi.encode(block.chainid, address(this), task, seat, msg.sender, salt));
        uint256 madeIn = committedIn[msg.sender][commitment];
        if (madeIn == 0) revert Refusals.NotCommitted(commitment);
        if (madeIn == block.number) revert Refusals.SameBlock(block.number);
        delete committedIn[msg.sender][commitment];
        _requireAttested(task, seat, digest, salt);
        (address account, uint256 paid) = BOARD.caught(task, seat, msg.sender);
        emit Informed(task, seat, account, msg.sender, paid);
    }

    // ------------------------------------------------------------------ reveals

    /// @inheritdoc ILooks
    function reveal(
        TaskId task,
        uint256 look,
        bytes32 secret,
        bytes32 digest,
        bytes32 segmentRoot,
        bytes32[] calldata path
    ) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        bytes32 seed = _requireTime(task, look, terms.moveTime, true);
        Look storage entry = _looks[task][look];
        if (entry.revealed != 0) revert Refusals.AlreadyRevealed(task, look);
        (uint256 level, uint256 slot) = Cells.placeOf(look);
        uint256 seat = _lookedAt(level, slot, terms.segmentsPerVerifier);
        bytes32 salt =
            Digests.salt(address(BOARD), task, seat, BOARD.seatOf(task, seat).account, seed, secret);
        _requireAttested(task, seat, digest, salt);
        // A seat's digest covers its segments and the result, a look's covers its segment.
        (uint256 size, uint256 place) = level == 1
            ? (terms.segmentsPerVerifier + 1, slot % terms.segmentsPerVerifier)
            : (uint256(1), uint256(0));
        bytes32 computed = Rfc9162.rootFromLeaf(size, place, Rfc9162.leafHash32(segmentRoot), path);
        if (computed != digest) revert Refusals.WrongRoot(digest, computed);
        entry.revealed = keccak256(abi.encode(salt, segmentRoot));
        emit Revealed(task, look, salt, segmentRoot);
    }

    /// @inheritdoc ILooks
    function takeUnrevealed(TaskId task, uint256 look) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        _requireTime(task, look, terms.moveTime, false);
        if (_looks[task][look].revealed != 0) revert Refusals.AlreadyRevealed(task, look);
        (address account, address looker, uint256 paid) = _forfeit(task, look, terms, false);
        emit Unrevealed(task, look, account, looker, paid);
    }

    // ------------------------------------------------------------------ accusations

    /// @inheritdoc ILooks
    function accuse(
        TaskId task,
        uint256 look,
        GameId game,
        bytes32 salt,
        bytes32 segmentRoot,
        Place calldata place,
        ChunkProof calldata proof
    ) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Seat memory looker = BOARD.seatOf(task, look);
        if (msg.sender != looker.account) revert Refusals.NotAllowed(looker.account, msg.sender);
        // Otherwise it could stay silent, and another account would be paid for the bond locked here.
        if (!looker.attested) revert Refusals.NotAttested(task, look);
        Look storage entry = _looks[task][look];
        if (entry.revealed != keccak256(abi.encode(salt, segmentRoot))) {
            revert Refusals.NotRevealed(task, look);
        }
        if (entry.accused != 0) revert Refusals.AlreadyAccused(task, look);
        if (entry.accusations == MAX_ACCUSATIONS) {
            revert Refusals.LimitReached(MAX_ACCUSATIONS, entry.accusations);
        }
        (uint256 level, uint256 slot) = Cells.placeOf(look);
        uint256 seat = _lookedAt(level, slot, terms.segmentsPerVerifier);
        if (BOARD.seatOf(task, seat).caught) revert Refusals.AlreadyCaught(task, seat);
        SegmentIndex segment = SegmentIndex.wrap(BOARD.segmentsOf(task, look)[0]);
        bytes32 leaf = _prove(task, segment, terms, salt, place, proof);
        if (GameId.unwrap(game) != 0) _drop(game, task, segment, entry, terms);
        _keep(task, look, entry, Accusation(place, leaf, segmentRoot), terms);
    }

    /// @inheritdoc ILooks
    function drop(TaskId task, uint256 look, GameId game) external {
        ITaskMarket.SeatTerms memory terms = MARKET.seatTermsOf(task);
        // Once the task is Unpaid nobody can be accused, so the game cannot be left by accusing.
        bool isUnpaid = terms.status == ITaskMarket.Status.Unpaid;
        if (!isUnpaid && terms.status != ITaskMarket.Status.Submitted) {
            revert Refusals.WrongStatus(task, terms.status);
        }
        address looker = BOARD.seatOf(task, look).account;
        if (msg.sender != looker) revert Refusals.NotAllowed(looker, msg.sender);
        (uint256 level, uint256 slot) = Cells.placeOf(look);
        uint256 seat = _lookedAt(level, slot, terms.segmentsPerVerifier);
        if (!isUnpaid && !BOARD.seatOf(task, seat).caught) revert Refusals.NotCaught(task, seat);
        SegmentIndex segment = SegmentIndex.wrap(BOARD.segmentsOf(task, look)[0]);
        _drop(game, task, segment, _looks[task][look], terms);
    }

    /// @inheritdoc ILooks
    function answer(
        TaskId task,
        uint256 look,
        Accusation calldata accusation,
        bytes32[] calldata chunk,
        bytes32[] calldata tensor,
        bytes32[] calldata state
    ) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Look storage entry = _accused(task, look);
        if (entry.accused != keccak256(abi.encode(accusation))) revert Refusals.NotAccused(task, look);
        _requireInTime(entry);
        Place calldata place = accusation.place;
        bytes32 node = Digests.fold(accusation.leaf, place.turns, place.depth, chunk);
        node = Rfc9162.rootFromLeaf(terms.stateTensors, place.tensor, Rfc9162.leafHash32(node), tensor);
        uint256 states = uint256(terms.segmentSteps) + 1;
        node = Rfc9162.rootFromLeaf(states, place.step, Rfc9162.leafHash32(node), state);
        if (node != accusation.segmentRoot) revert Refusals.WrongRoot(accusation.segmentRoot, node);
        _close(task, entry, _accountLookedAt(task, look, terms));
        emit Answered(task, look);
    }

    /// @inheritdoc ILooks
    function contest(TaskId task, uint256 look, GameId game) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Look storage entry = _accused(task, look);
        _requireInTime(entry);
        address account = _accountLookedAt(task, look, terms);
        if (msg.sender != account) revert Refusals.NotAllowed(account, msg.sender);
        IDisputeGame.Game memory played = _game().gameOf(game);
        // A blind game has no segment (0) until it has found one. After a false segment, no later segment is
        // what an honest account computes.
        bool its = TaskId.unwrap(played.task) == TaskId.unwrap(task) && played.challenger == account
            && played.phase != IDisputeGame.Phase.Closed
            && SegmentIndex.unwrap(played.segment) <= BOARD.segmentsOf(task, look)[0];
        if (!its) revert Refusals.NotOfLook(task, look, game);
        entry.game = uint64(GameId.unwrap(game));
        emit Contested(task, look, game);
    }

    /// @inheritdoc ILooks
    function takeUnanswered(TaskId task, uint256 look) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Look storage entry = _accused(task, look);
        if (block.timestamp <= entry.until) revert Refusals.TooEarly(entry.until, block.timestamp);
        GameId game = GameId.wrap(entry.game);
        if (GameId.unwrap(game) != 0 && _game().gameOf(game).phase != IDisputeGame.Phase.Closed) {
            revert Refusals.GameGoesOn(game);
        }
        _close(task, entry, BOARD.seatOf(task, look).account);
        (address account, address looker, uint256 paid) = _forfeit(task, look, terms, true);
        emit Unanswered(task, look, account, looker, paid);
    }

    /// @inheritdoc ILooks
    function closeMoot(TaskId task, uint256 look) external {
        ITaskMarket.SeatTerms memory terms = MARKET.seatTermsOf(task);
        Look storage entry = _accused(task, look);
        // A task with an open accusation can end only by a conviction or by a jury.
        if (terms.status == ITaskMarket.Status.Submitted) revert Refusals.WrongStatus(task, terms.status);
        // A conviction shows that the solver's step tree was false. If data are withheld, nobody can say who
        // is right.
        address to = terms.status == ITaskMarket.Status.Slashed
            ? _accountLookedAt(task, look, terms)
            : BOARD.seatOf(task, look).account;
        _close(task, entry, to);
        emit Moot(task, look);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc ILooks
    function openAccusations(TaskId task) external view returns (uint256) {
        return _open[task].count;
    }

    /// @inheritdoc ILooks
    function answersUntil(TaskId task) external view returns (uint64) {
        return _open[task].until;
    }

    /// @inheritdoc ILooks
    function lookOf(TaskId task, uint256 look) external view returns (Look memory) {
        return _looks[task][look];
    }

    // ------------------------------------------------------------------ inside

    function _game() private view returns (IDisputeGame) {
        return IDisputeGame(MARKET.game());
    }

    function _submitted(TaskId task) private view returns (ITaskMarket.SeatTerms memory terms) {
        terms = MARKET.seatTermsOf(task);
        if (terms.status != ITaskMarket.Status.Submitted) revert Refusals.WrongStatus(task, terms.status);
    }

    function _requireAttested(TaskId task, uint256 seat, bytes32 digest, bytes32 salt) private view {
        bytes32 due = BOARD.attestationOf(task, seat);
        if (due == 0) revert Refusals.NotAttested(task, seat);
        bytes32 given = Digests.attestation(digest, Digests.saltHash(salt));
        if (given != due) revert Refusals.WrongAttestation(due, given);
    }

    /// @dev Requires that the look has an account. If `running`, requires that the time to reveal is not
    /// over, otherwise that it is over. Looks are drawn level by level. The time counts from the latest draw
    /// that picked any, so earlier looks never get less time.
    /// @return The seed of the task's first draw.
    function _requireTime(TaskId task, uint256 look, uint256 moveTime, bool running)
        private
        view
        returns (bytes32)
    {
        if (look >> 5 == 0 || look >= Cells.FIRST_JUROR || BOARD.seatOf(task, look).account == address(0)) {
            revert Refusals.NoLook(task, look);
        }
        (uint64 until, bytes32 seed) = BOARD.pickedAt(task);
        until += uint64(moveTime);
        if (running && block.timestamp > until) revert Refusals.TooLate(until, block.timestamp);
        if (!running && block.timestamp <= until) revert Refusals.TooEarly(until, block.timestamp);
        return seed;
    }

    /// @dev The seat or look that a look checks.
    function _lookedAt(uint256 level, uint256 slot, uint256 each) private pure returns (uint256) {
        return level == 1 ? slot / each : Cells.number(level - 1, slot);
    }

    function _accountLookedAt(TaskId task, uint256 look, ITaskMarket.SeatTerms memory terms)
        private
        view
        returns (address)
    {
        (uint256 level, uint256 slot) = Cells.placeOf(look);
        return BOARD.seatOf(task, _lookedAt(level, slot, terms.segmentsPerVerifier)).account;
    }

    /// @dev The seat or look being checked loses its lock; half goes to the look's account.
    /// @param again Whether to accept that another look has already taken the lock: `paid` is then 0. If
    /// this is false, the board reverts in that case.
    function _forfeit(TaskId task, uint256 look, ITaskMarket.SeatTerms memory terms, bool again)
        private
        returns (address account, address looker, uint256 paid)
    {
        (uint256 level, uint256 slot) = Cells.placeOf(look);
        uint256 seat = _lookedAt(level, slot, terms.segmentsPerVerifier);
        looker = BOARD.seatOf(task, look).account;
        Seat memory found = BOARD.seatOf(task, seat);
        if (again && found.caught) return (found.account, looker, 0);
        (account, paid) = BOARD.forfeit(task, seat, looker);
    }

    /// @dev Drops the caller's game, which asked for the step tree of the look's segment. A look needs one
    /// tree, so it may drop one game. If it could drop more, it could delay the solver's payment again and
    /// again at a game's cost. And an accomplice of the solver could put any number of games before those of
    /// an account that trained the task again, for nothing: bonds do not double in an Unpaid task, and the
    /// solver is paid for the drop.
    function _drop(
        GameId game,
        TaskId task,
        SegmentIndex segment,
        Look storage entry,
        ITaskMarket.SeatTerms memory terms
    ) private {
        if (entry.dropped) revert Refusals.LimitReached(1, 1);
        entry.dropped = true;
        _game().drop(game, task, segment, msg.sender, terms.gameCost, terms.moveTime);
    }

    /// @dev Proves that the chunk is in that place of the segment's step tree and is one that a digest
    /// includes. Returns its leaf under the salt.
    function _prove(
        TaskId task,
        SegmentIndex segment,
        ITaskMarket.SeatTerms memory terms,
        bytes32 salt,
        Place calldata place,
        ChunkProof calldata proof
    ) private view returns (bytes32) {
        bytes32 key = Proofs.stepsKey(task, segment);
        IDisputeGame.Claim memory steps = _game().claimOf(key);
        if (steps.postedAt == 0) revert Refusals.NotRequested(key);
        if (!Digests.selects(place.turns, place.step, terms.thinning)) {
            revert Refusals.NotSelected(place.turns, place.step, terms.thinning);
        }
        bytes32 tensor = Digests.fold(Rfc9162.leafHash(proof.chunk), place.turns, place.depth, proof.path);
        if (tensor != proof.tensor.value) revert Refusals.WrongRoot(proof.tensor.value, tensor);
        Proofs.requireLeaf(proof.state.value, terms.stateTensors, place.tensor, proof.tensor);
        Proofs.requireLeaf(steps.root, steps.size, place.step, proof.state);
        return Digests.leaf(salt, proof.chunk);
    }

    function _keep(
        TaskId task,
        uint256 look,
        Look storage entry,
        Accusation memory accusation,
        ITaskMarket.SeatTerms memory terms
    ) private {
        uint64 until = uint64(block.timestamp) + terms.moveTime;
        entry.accused = keccak256(abi.encode(accusation));
        (entry.until, entry.game) = (uint40(until), 0);
        ++entry.accusations;
        entry.lock = uint48(VAULT.lock(msg.sender, terms.gameCost));
        Open storage open = _open[task];
        ++open.count;
        // All accusations of a task have the same time to answer, so the latest ends last.
        open.until = uint40(until);
        emit Accused(task, look, accusation, until);
    }

    function _accused(TaskId task, uint256 look) private view returns (Look storage entry) {
        entry = _looks[task][look];
        if (entry.accused == 0) revert Refusals.NotAccused(task, look);
    }

    function _requireInTime(Look storage entry) private view {
        if (block.timestamp > entry.until) revert Refusals.TooLate(entry.until, block.timestamp);
    }

    /// @dev Closes the accusation; its bond goes to `to`.
    function _close(TaskId task, Look storage entry, address to) private {
        entry.accused = 0;
        --_open[task].count;
        VAULT.pay(entry.lock, to, type(uint256).max);
    }
}
