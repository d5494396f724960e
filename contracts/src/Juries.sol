// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {IJuries} from "./interfaces/IJuries.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {Cells} from "./libraries/Cells.sol";
import {Digests} from "./libraries/Digests.sol";
import {Proofs} from "./libraries/Proofs.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {Rfc9162} from "./libraries/Rfc9162.sol";
import {TaskId} from "./types/Ids.sol";
import {Seat} from "./types/Seats.sol";

/// @title Juries: claims that data are withheld, and their verdicts (audit.md section 7).
/// @dev The board draws jurors, takes their votes and punishes silent ones; the market charges the solver if
/// data are withheld.
contract Juries is IJuries {
    /// @dev Number of claims made in a seat by the latest registration that claimed there.
    struct Counted {
        uint40 registration;
        uint8 claims;
    }

    /// @dev Claims that one registration may make in a seat in addition to one for each of its segments: for
    /// the result, for the constants, and for two items on which a jury could not decide. A seat has at most
    /// 64 segments, so the count fits its byte.
    uint256 private constant SPARE_CLAIMS = 4;
    /// @dev Number of bits in a walk.
    uint256 private constant WALK = 32;

    IStakeVault private immutable VAULT;
    ITaskMarket private immutable MARKET;
    IAuditBoard private immutable BOARD;
    uint128 private immutable DRAW_FEE;

    mapping(TaskId task => Claim) private _claims;
    mapping(TaskId task => mapping(uint256 seat => Counted)) private _counted;

    constructor(IStakeVault vault, ITaskMarket market, IAuditBoard board) {
        (VAULT, MARKET, BOARD) = (vault, market, board);
        DRAW_FEE = market.parameters().drawFee;
    }

    /// @inheritdoc IJuries
    function claim(TaskId task, uint256 seat, uint32 item) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        if (terms.jurors == 0) revert Refusals.NoJuries(task);
        uint256 constants = _constants(terms);
        if (item > constants) revert Refusals.OutOfBounds("item", 0, constants, item);
        Claim storage entry = _claims[task];
        if (entry.account != address(0)) revert Refusals.JuryOpen(task);
        _requireAwaited(task, seat, uint256(terms.segmentsPerVerifier) + SPARE_CLAIMS);
        (entry.account, entry.seat, entry.item) = (msg.sender, uint8(seat), item);
        entry.bond = uint48(VAULT.lock(msg.sender, _auditFee(terms)));
        // No other draw is pending: the claimant's time ends before another draw of seats or looks can be
        // requested.
        BOARD.askJury(task, seat, terms.jurors, uint48(VAULT.lock(msg.sender, DRAW_FEE)));
        emit Claimed(task, seat, msg.sender, item);
    }

    /// @inheritdoc IJuries
    function object(TaskId task, uint32 tensor, uint32 walk) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Claim storage entry = _claim(task);
        if (msg.sender != entry.account) revert Refusals.NotAllowed(entry.account, msg.sender);
        if (entry.until != 0) revert Refusals.AlreadyObjected(task);
        (uint64 until, uint256 yes, uint256 no) = _votes(task);
        if (block.timestamp <= until) revert Refusals.TooEarly(until, block.timestamp);
        until += terms.moveTime;
        if (block.timestamp > until) revert Refusals.TooLate(until, block.timestamp);
        if (!_isObjectable(yes, no, terms)) revert Refusals.NotObjected(task);
        (, uint256 tensors) = _treeOf(task, entry.item, terms);
        if (tensor >= tensors) revert Refusals.OutOfBounds("tensor", 0, tensors - 1, tensor);
        until = uint64(block.timestamp) + terms.moveTime;
        (entry.until, entry.tensor, entry.walk) = (uint40(until), tensor, walk);
        emit Objected(task, tensor, walk, until);
    }

    /// @inheritdoc IJuries
    function open(TaskId task, uint256 juror, bytes32 secret, bytes32 digest, Opening calldata opening)
        external
    {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Claim storage entry = _claim(task);
        uint64 until = entry.until;
        if (until == 0) revert Refusals.NotObjected(task);
        if (block.timestamp > until) revert Refusals.TooLate(until, block.timestamp);
        (uint256 level, uint256 slot) = Cells.placeOf(juror);
        bytes32 due = level == Cells.JURY ? BOARD.attestationOf(task, juror) : bytes32(0);
        if (due == 0 || entry.opened >> slot & 1 == 1) revert Refusals.NothingToOpen(task, juror);
        address account = BOARD.seatOf(task, juror).account;
        (, bytes32 seed) = BOARD.pickedAt(task);
        bytes32 salt = Digests.salt(address(BOARD), task, juror, account, seed, secret);
        bytes32 given = Digests.attestation(digest, Digests.saltHash(salt));
        if (given != due) revert Refusals.WrongAttestation(due, given);
        _requireChunk(task, entry, terms, opening, salt, digest);
        entry.opened |= uint32(1 << slot);
        emit Opened(task, juror, account);
    }

    /// @inheritdoc IJuries
    function close(TaskId task) external {
        ITaskMarket.SeatTerms memory terms = _submitted(task);
        Claim memory entry = _claim(task);
        (uint64 until, uint256 yes, uint256 no) = _votes(task);
        if (entry.until != 0) until = entry.until;
        else if (_isObjectable(yes, no, terms)) until += terms.moveTime;
        if (block.timestamp <= until) revert Refusals.TooEarly(until, block.timestamp);
        delete _claims[task];
        if (entry.until != 0) {
            _forfeit(task, yes & ~uint256(entry.opened));
            yes &= entry.opened;
        }
        Verdict verdict = Verdict.Undecided;
        uint256 paid = yes | no;
        if (_isMost(yes, terms)) (verdict, paid) = (Verdict.Available, yes);
        else if (_isMost(no, terms)) (verdict, paid) = (Verdict.Withheld, no);
        _pay(task, entry.bond, paid, _auditFee(terms) / terms.jurors);
        BOARD.endJury(task, verdict != Verdict.Withheld);
        if (verdict == Verdict.Withheld) MARKET.withheld(task, entry.account);
        emit Judged(task, entry.seat, entry.item, verdict, _count(yes), _count(no));
    }

    /// @inheritdoc IJuries
    function drop(TaskId task) external {
        Claim memory entry = _claim(task);
        if (MARKET.statusOf(task) == ITaskMarket.Status.Submitted) {
            (uint256 claimant,,,,) = BOARD.juryOf(task);
            if (claimant != 0) revert Refusals.JuryOpen(task);
        }
        delete _claims[task];
        VAULT.release(entry.bond, type(uint256).max);
        emit Dropped(task, entry.seat, entry.account);
    }

    /// @inheritdoc IJuries
    function claimOf(TaskId task) external view returns (Claim memory) {
        return _claims[task];
    }

    // ------------------------------------------------------------------ inside

    function _submitted(TaskId task) private view returns (ITaskMarket.SeatTerms memory terms) {
        terms = MARKET.seatTermsOf(task);
        if (terms.status != ITaskMarket.Status.Submitted) revert Refusals.WrongStatus(task, terms.status);
    }

    function _claim(TaskId task) private view returns (Claim storage entry) {
        entry = _claims[task];
        if (entry.account == address(0)) revert Refusals.NoClaim(task);
    }

    /// @dev Requires that the caller holds the seat or look, is in time and has not attested, and has made
    /// fewer than `most` claims there. Counts this claim.
    function _requireAwaited(TaskId task, uint256 seat, uint256 most) private {
        Seat memory found = BOARD.seatOf(task, seat);
        if (msg.sender != found.account) revert Refusals.NotAllowed(found.account, msg.sender);
        if (found.attested) revert Refusals.AlreadyAttested(task, seat);
        if (block.timestamp > found.until) revert Refusals.TooLate(found.until, block.timestamp);
        Counted storage counted = _counted[task][seat];
        uint256 claims = counted.registration == found.registration ? counted.claims : 0;
        if (claims == most) revert Refusals.NoClaimsLeft(task, seat, most);
        (counted.registration, counted.claims) = (found.registration, uint8(claims + 1));
    }

    /// @dev The last second for votes, and the yes and no slots of the drawn jury.
    function _votes(TaskId task) private view returns (uint64 until, uint256 yes, uint256 no) {
        uint256 claimant;
        bool pending;
        (claimant, pending, until, yes, no) = BOARD.juryOf(task);
        // The jury's draw lapsed.
        if (claimant == 0) revert Refusals.NoClaim(task);
        if (pending) revert Refusals.DrawPending(task);
    }

    /// @dev Item number of the constants tree: the one after the last state.
    function _constants(ITaskMarket.SeatTerms memory terms) private pure returns (uint256) {
        return uint256(terms.segments) + 1;
    }

    /// @dev The tree whose leaves are the roots of the item's tensors. The root of a state is known only from
    /// its opening.
    function _treeOf(TaskId task, uint256 item, ITaskMarket.SeatTerms memory terms)
        private
        view
        returns (bytes32 root, uint256 size)
    {
        return item == _constants(terms) ? MARKET.constantsOf(task) : (bytes32(0), terms.stateTensors);
    }

    function _auditFee(ITaskMarket.SeatTerms memory terms) private pure returns (uint256) {
        return terms.fee / terms.segmentsPerVerifier;
    }

    function _count(uint256 slots) private pure returns (uint256 count) {
        for (; slots != 0; slots &= slots - 1) {
            ++count;
        }
    }

    /// @dev More than half of the whole jury: silence and empty slots do not count as votes.
    function _isMost(uint256 slots, ITaskMarket.SeatTerms memory terms) private pure returns (bool) {
        return 2 * _count(slots) > terms.jurors;
    }

    /// @dev Somebody voted yes and would be paid for it, so the claimant may make each such juror prove that
    /// it has the item.
    function _isObjectable(uint256 yes, uint256 no, ITaskMarket.SeatTerms memory terms)
        private
        pure
        returns (bool)
    {
        return yes != 0 && !_isMost(no, terms);
    }

    /// @dev Requires that the chunk named by the objection is in the item and, under the salt, in the digest.
    /// The highest bits of the walk, as many as the path is long, are the chunk's turns.
    function _requireChunk(
        TaskId task,
        Claim storage entry,
        ITaskMarket.SeatTerms memory terms,
        Opening calldata opening,
        bytes32 salt,
        bytes32 digest
    ) private view {
        uint256 depth = opening.path.length;
        if (depth > WALK) revert Refusals.LimitReached(WALK, depth);
        uint256 turns = uint256(entry.walk) >> WALK - depth;
        (uint256 item, uint256 tensor) = (entry.item, entry.tensor);
        // The salted leaf bounds the chunk's length, and no inner node of a tree of chunks has the hash of a
        // leaf.
        bytes32 node = Digests.fold(Digests.leaf(salt, opening.chunk), turns, depth, opening.saltedPath);
        (bytes32 root, uint256 tensors) = _treeOf(task, item, terms);
        node = Rfc9162.rootFromLeaf(tensors, tensor, Rfc9162.leafHash32(node), opening.saltedTensor);
        if (node != digest) revert Refusals.WrongRoot(digest, node);
        node = Digests.fold(Rfc9162.leafHash(opening.chunk), turns, depth, opening.path);
        if (node != opening.tensor.value) revert Refusals.WrongRoot(opening.tensor.value, node);
        if (item == _constants(terms)) {
            if (opening.state.value != 0 || opening.state.path.length != 0) {
                revert Refusals.UnexpectedProof();
            }
        } else {
            root = opening.state.value;
            Proofs.requireLeaf(terms.root, uint64(_constants(terms)), uint64(item), opening.state);
        }
        Proofs.requireLeaf(root, uint64(tensors), uint64(tensor), opening.tensor);
    }

    /// @dev These jurors lose their whole locks, which burn: nobody gains if an honest juror was away for a
    /// move time.
    function _forfeit(TaskId task, uint256 slots) private {
        for (uint256 slot; slots >> slot != 0; ++slot) {
            if (slots >> slot & 1 == 0) continue;
            uint256 juror = Cells.number(Cells.JURY, slot);
            (address account,) = BOARD.forfeit(task, juror, address(0));
            emit Unopened(task, juror, account);
        }
    }

    /// @dev Pays each of these jurors a share of the bond; the rest burns.
    function _pay(TaskId task, uint256 bond, uint256 slots, uint256 share) private {
        for (uint256 slot; slots >> slot != 0; ++slot) {
            if (slots >> slot & 1 == 0) continue;
            VAULT.pay(bond, BOARD.seatOf(task, Cells.number(Cells.JURY, slot)).account, share);
        }
        VAULT.burn(bond, type(uint256).max);
    }
}
