// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "./types/Ids.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";

import {IArbiter} from "./interfaces/IArbiter.sol";
import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {ICommitments} from "./interfaces/ICommitments.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {ITermsBounds} from "./interfaces/ITermsBounds.sol";
import {Bids} from "./libraries/Bids.sol";
import {Fees} from "./libraries/Fees.sol";
import {Refusals} from "./libraries/Refusals.sol";
import {SegmentTree} from "./libraries/SegmentTree.sol";
import {TermsCheck} from "./libraries/TermsCheck.sol";
import {Ends} from "./market/Ends.sol";
import {MarketState} from "./market/MarketState.sol";
import {Parameters} from "./types/Parameters.sol";
import {Terms} from "./types/Terms.sol";

/// @title TaskMarket: the life of a task (dispute.md section 2), with open descending bids.
/// @notice Exits that anyone can trigger: Bidding by `assign`, Training by `expire`, Submitted by `settle`,
/// `voidTask` or `stall` (before that the board's `draw` and `redraw`), Unpaid by `closeStalled`. An open
/// game delays `settle`, `voidTask` and `closeStalled`, and its clocks end it. Bidding without a bid has one
/// more exit, the submitter's `cancel`. The pauser stops new tasks and nothing else.
/// @dev Calls only contracts of the same deployment. None of them calls back except as documented, so there
/// is no reentrancy guard.
contract TaskMarket is Ends, Pausable {
    uint256 private constant MAX_URL_LENGTH = 256;
    /// @dev Maximum age, in seconds, of the beacon's latest round when a task is posted.
    uint256 private constant BEACON_AGE = 1 days;

    /// @dev When a jury finds that data are withheld, 1 / JURY_SHARE of the stake is taken.
    uint256 private constant JURY_SHARE = TermsCheck.JURY_SHARE;

    IBeacon private immutable BEACON;
    ITermsBounds private immutable BOUNDS;
    uint16 private immutable ARITHMETIC;
    address private immutable DEPLOYER;
    address private immutable PAUSER;

    /// @inheritdoc ITaskMarket
    address public game;
    /// @inheritdoc ITaskMarket
    mapping(address party => string) public endpointOf;

    modifier only(address due) {
        _only(due);
        _;
    }

    /// @notice Only `deployer` may initialise; `msg.sender` may be a factory that anyone can use to create
    /// this contract.
    constructor(
        IStakeVault vault,
        IArbiter arbiter,
        IBeacon beacon,
        ITermsBounds bounds,
        address deployer,
        address pauser,
        Parameters memory parameters_
    ) MarketState(vault, parameters_) {
        (BEACON, BOUNDS) = (beacon, bounds);
        ARITHMETIC = arbiter.arithmetic();
        DEPLOYER = deployer;
        PAUSER = pauser;
        TermsCheck.checkParameters(parameters_);
    }

    /// @notice Sets the audit board, the game, the commitments, the looks and the juries. Deployer only,
    /// once.
    function initialise(
        IAuditBoard board_,
        address game_,
        ICommitments commitments_,
        address looks_,
        address juries_
    ) external only(DEPLOYER) {
        if (game != address(0)) revert Refusals.AlreadyInitialised();
        _requireCode(address(board_));
        _requireCode(game_);
        _requireCode(address(commitments_));
        _requireCode(looks_);
        _requireCode(juries_);
        (board, game, commitments, looks, juries) = (board_, game_, commitments_, looks_, juries_);
    }

    /// @notice Pauser only: stops new tasks. Running tasks, games and funds are not affected.
    function pause() external only(PAUSER) {
        _pause();
    }

    /// @notice Pauser only: accepts new tasks again.
    function unpause() external only(PAUSER) {
        _unpause();
    }

    /// @inheritdoc ITaskMarket
    function announce(string calldata url) external {
        uint256 length = bytes(url).length;
        if (length > MAX_URL_LENGTH) revert Refusals.OutOfBounds("url length", 0, MAX_URL_LENGTH, length);
        endpointOf[msg.sender] = url;
        emit Announced(msg.sender, url);
    }

    // ------------------------------------------------------------------ from posting to submission

    /// @inheritdoc ITaskMarket
    function post(Terms calldata terms) external whenNotPaused returns (TaskId task) {
        BOUNDS.check(terms, _parameters, ARITHMETIC);
        // With fewer accounts, the seats and a jury could not all be filled at once.
        uint256 least = terms.jurors == 0 ? 1 : uint256(terms.verifiers) + terms.jurors;
        uint256 registered = board.registered();
        if (registered < least) {
            revert Refusals.OutOfBounds("registered", least, type(uint32).max, registered);
        }
        _requireBeacon();
        task = TaskId.wrap(++_newest);
        Task storage entry = _tasks[task];
        _terms[task] = terms;
        entry.submitter = msg.sender;
        entry.status = Status.Bidding;
        entry.bidsUntil = uint64(block.timestamp) + terms.biddingPeriod;
        entry.escrow = _lock(
            Fees.escrow(
                terms.budget,
                terms.verifiers,
                terms.segmentsPerVerifier,
                terms.auditFee,
                terms.lookChance,
                DRAW_FEE
            )
        );
        board.snapshot(task);
        emit Posted(task, msg.sender, terms.programId, terms.bundle);
    }

    /// @inheritdoc ITaskMarket
    function bid(TaskId task, uint128 price) external {
        Task storage entry = _at(task, Status.Bidding);
        uint64 until = entry.bidsUntil;
        if (block.timestamp > until) revert Refusals.TooLate(until, block.timestamp);
        Terms storage terms = _terms[task];
        if (price > terms.budget) revert Refusals.OutOfBounds("price", 0, terms.budget, price);
        uint32 extension = terms.extension;
        if (entry.bidder != address(0)) {
            Bids.requireLower(entry.price, price, entry.overtime, extension);
            _releaseAll(entry.stake);
        }
        (entry.bidder, entry.price) = (msg.sender, price);
        entry.stake = _lock(terms.delayPenalty);
        uint64 end = uint64(block.timestamp) + extension;
        if (end > until) {
            entry.overtime += end - until;
            entry.bidsUntil = until = end;
        }
        emit BidPlaced(task, msg.sender, price, until);
    }

    /// @inheritdoc ITaskMarket
    function assign(TaskId task) external {
        Task storage entry = _at(task, Status.Bidding);
        if (block.timestamp <= entry.bidsUntil) revert Refusals.TooEarly(entry.bidsUntil, block.timestamp);
        if (entry.bidder == address(0)) return _refund(task, entry);
        entry.status = Status.Training;
        entry.trainUntil = entry.bidsUntil + _terms[task].trainingPeriod;
        emit Assigned(task, entry.bidder, entry.price);
    }

    /// @inheritdoc ITaskMarket
    function cancel(TaskId task) external {
        Task storage entry = _at(task, Status.Bidding);
        _only(entry.submitter);
        if (entry.bidder != address(0)) revert Refusals.HasBid(task, entry.bidder);
        _refund(task, entry);
    }

    /// @inheritdoc ITaskMarket
    function progress(
        TaskId task,
        bytes32 root,
        uint32 size,
        bytes32[] calldata firstPath,
        bytes32[] calldata consistency
    ) external {
        Task storage entry = _training(task);
        uint32 most = _terms[task].segments;
        if (size <= entry.size || size > most) revert Refusals.TreeSize(entry.size + 1, most, size);
        SegmentTree.extend(entry, _terms[task], root, size, firstPath, consistency);
        emit Progressed(task, root, size);
    }

    /// @inheritdoc ITaskMarket
    function submit(
        TaskId task,
        bytes32 root,
        bytes32[] calldata firstPath,
        bytes32[] calldata consistency,
        bytes32 result,
        bytes32[] calldata resultPath
    ) external {
        Task storage entry = _training(task);
        Terms storage terms = _terms[task];
        uint32 segments = terms.segments;
        SegmentTree.extend(entry, terms, root, segments + 1, firstPath, consistency);
        SegmentTree.requireLeaf(segments + 1, segments, result, root, resultPath);
        (entry.status, entry.result) = (Status.Submitted, result);
        (entry.challengeUntil, entry.owesDraw) = (type(uint64).max, true);
        _releaseAll(entry.stake);
        entry.stake = _lock(terms.stake);
        uint64 round = board.askFirstDraw(task, terms.verifiers);
        emit Submitted(task, root, result, round);
    }

    // ------------------------------------------------------------------ hooks of the game

    /// @inheritdoc ITaskMarket
    function gameOpened(TaskId task) external only(game) returns (Played memory played) {
        Task storage entry = _existing(task);
        _requireInWindow(task, entry);
        ++entry.openGames;
        Terms storage terms = _terms[task];
        (played.root, played.size) = (entry.root, entry.size);
        (played.segmentSteps, played.stateTensors) = (terms.segmentSteps, terms.stateTensors);
        played.clock = _clock(terms);
    }

    /// @inheritdoc ITaskMarket
    function gameClosed(TaskId task) external only(game) {
        --_existing(task).openGames;
    }

    /// @inheritdoc ITaskMarket
    function convict(TaskId task, address challenger) external only(game) {
        Task storage entry = _existing(task);
        _requireChallengeable(task, entry);
        Terms storage terms = _terms[task];
        uint256 reward = entry.status == Status.Unpaid ? terms.retrainReward : terms.reward;
        (entry.status, entry.openGames) = (Status.Slashed, entry.openGames - 1);
        uint256 stake = VAULT.slash(
            entry.stake, challenger, reward, entry.submitter, terms.restitution, entry.escrow, _owed(entry)
        );
        emit Slashed(task, entry.bidder, challenger, stake, reward);
    }

    // ------------------------------------------------------------------ hook of the commitments

    /// @inheritdoc ITaskMarket
    function compensate(TaskId task, address account, bool cost, uint256 segments)
        external
        only(address(commitments))
        returns (uint256 amount)
    {
        Task storage entry = _at(task, Status.Slashed);
        Terms storage terms = _terms[task];
        amount = Fees.ofSeat(terms.auditFee, segments);
        if (cost) amount += terms.gameCost;
        VAULT.pay(entry.stake, account, amount);
    }

    // ------------------------------------------------------------------ hook of the juries

    /// @inheritdoc ITaskMarket
    function withheld(TaskId task, address claimant) external only(juries) {
        Task storage entry = _at(task, Status.Submitted);
        Terms storage terms = _terms[task];
        uint256 paid = VAULT.pay(entry.stake, claimant, uint256(terms.auditFee) + DRAW_FEE);
        VAULT.burn(entry.stake, terms.stake / JURY_SHARE - paid);
        _unpaid(task, entry);
    }

    // ------------------------------------------------------------------ hooks of the audit board

    /// @inheritdoc ITaskMarket
    function drawAsked(TaskId task, bool owed) external only(address(board)) {
        Task storage entry = _at(task, Status.Submitted);
        (entry.challengeUntil, entry.owesDraw) = (type(uint64).max, owed);
    }

    /// @inheritdoc ITaskMarket
    function drawn(TaskId task, address drawer, uint64 until) external only(address(board)) {
        Task storage entry = _tasks[task];
        if (until != 0) {
            Terms storage terms = _terms[task];
            entry.challengeUntil = until + terms.challengePeriod - terms.attestPeriod;
        }
        if (entry.owesDraw) {
            entry.owesDraw = false;
            VAULT.pay(entry.escrow, drawer, DRAW_FEE);
        }
    }

    /// @inheritdoc ITaskMarket
    function payLook(TaskId task, address account) external only(address(board)) {
        VAULT.pay(_tasks[task].escrow, account, _terms[task].auditFee);
    }

    // ------------------------------------------------------------------ inside

    function _only(address due) private view {
        if (msg.sender != due) revert Refusals.NotAllowed(due, msg.sender);
    }

    function _requireCode(address account) private view {
        if (account.code.length == 0) revert Refusals.NoCode(account);
    }

    /// @dev Locks free tokens of the caller. Locks are numbered one by one, so 48 bits hold their numbers.
    function _lock(uint256 amount) private returns (uint48) {
        return uint48(VAULT.lock(msg.sender, amount));
    }

    /// @dev Ends a task on which nobody bid.
    function _refund(TaskId task, Task storage entry) private {
        entry.status = Status.Refunded;
        emit Refunded(task, _releaseAll(entry.escrow), 0);
    }

    /// @dev The task; reverts unless the caller is its solver and in time.
    function _training(TaskId task) private view returns (Task storage entry) {
        entry = _at(task, Status.Training);
        _only(entry.bidder);
        if (block.timestamp > entry.trainUntil) revert Refusals.TooLate(entry.trainUntil, block.timestamp);
    }

    function _requireBeacon() private view {
        uint64 latest = BEACON.latest();
        if (latest == 0 || BEACON.timeOf(latest) + BEACON_AGE < block.timestamp) {
            revert Refusals.StaleBeacon(latest, block.timestamp);
        }
    }
}
