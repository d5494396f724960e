// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "./types/Ids.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";

import {IArbiter} from "./interfaces/IArbiter.sol";
import {IAuditBoard} from "./interfaces/IAuditBoard.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ITaskMarket} from "./interfaces/ITaskMarket.sol";
import {Bids} from "./libraries/Bids.sol";
import {Errors} from "./libraries/Errors.sol";
import {Fees} from "./libraries/Fees.sol";
import {SegmentTree} from "./libraries/SegmentTree.sol";
import {Shares} from "./libraries/Shares.sol";
import {TermsCheck} from "./libraries/TermsCheck.sol";
import {Parameters} from "./types/Parameters.sol";
import {Terms} from "./types/Terms.sol";

/// @title TaskMarket: the life of a task (dispute.md section 2), with open descending bids.
/// @notice Exits that anyone may take: Bidding by `assign`, Training by `expire`, Submitted by `settle` or `voidTask` (before
/// that the board's `draw` or `missed`); an open game delays them, and its clocks end it. The pauser stops new tasks
/// and nothing else.
/// @dev Calls only contracts of its own deployment, none of which calls back in here but as documented; so no guard.
contract TaskMarket is ITaskMarket, Pausable {
    uint256 private constant MAX_URL_LENGTH = 256;

    IStakeVault private immutable VAULT;
    uint16 private immutable ARITHMETIC;
    address private immutable DEPLOYER;
    address private immutable PAUSER;

    Parameters private _parameters;
    /// @notice The audit board, whose calls `fixDrawBlock` and `payDrawer` take.
    IAuditBoard public board;
    /// @notice The dispute game, whose calls `gameOpened`, `gameClosed` and `convict` take.
    address public game;
    /// @dev Numbered from 1.
    mapping(TaskId task => Task) private _tasks;
    uint256 private _newest;
    mapping(TaskId task => Terms) private _terms;
    /// @inheritdoc ITaskMarket
    mapping(address party => string) public endpointOf;

    modifier only(address due) {
        _only(due);
        _;
    }

    /// @notice `deployer` alone may initialise: `msg.sender` may be the factory that anyone can create this contract with.
    constructor(
        IStakeVault vault,
        IArbiter arbiter,
        address deployer,
        address pauser,
        Parameters memory parameters_
    ) {
        VAULT = vault;
        ARITHMETIC = arbiter.arithmetic();
        DEPLOYER = deployer;
        PAUSER = pauser;
        TermsCheck.checkParameters(parameters_);
        _parameters = parameters_;
    }

    /// @notice The deployer names the audit board and the game, once.
    function initialise(IAuditBoard board_, address game_) external only(DEPLOYER) {
        if (game != address(0)) revert Errors.AlreadyInitialised();
        if (address(board_).code.length == 0) revert Errors.NoCode(address(board_));
        if (game_.code.length == 0) revert Errors.NoCode(game_);
        (board, game) = (board_, game_);
    }

    /// @notice The pauser: stops new tasks. Running tasks, games and funds are out of its reach.
    function pause() external only(PAUSER) {
        _pause();
    }

    /// @notice The pauser: takes new tasks again.
    function unpause() external only(PAUSER) {
        _unpause();
    }

    /// @inheritdoc ITaskMarket
    function announce(string calldata url) external {
        uint256 length = bytes(url).length;
        if (length > MAX_URL_LENGTH) revert Errors.OutOfBounds("url length", 0, MAX_URL_LENGTH, length);
        endpointOf[msg.sender] = url;
        emit Announced(msg.sender, url);
    }

    // ------------------------------------------------------------------ from posting to submission

    /// @inheritdoc ITaskMarket
    function post(Terms calldata terms) external whenNotPaused returns (TaskId task) {
        TermsCheck.check(terms, _parameters, ARITHMETIC);
        if (board.liveSlots() == 0) revert Errors.OutOfBounds("live slots", 1, type(uint32).max, 0);
        task = TaskId.wrap(++_newest);
        Task storage entry = _tasks[task];
        _terms[task] = terms;
        entry.submitter = msg.sender;
        entry.status = Status.Bidding;
        entry.bidsUntil = uint64(block.timestamp) + terms.biddingPeriod;
        uint256 fees = Fees.reserve(terms.auditFee, terms.verifiers, terms.segmentsPerVerifier);
        entry.escrow = _lock(terms.budget + fees + _parameters.drawFee);
        board.snapshot(task);
        emit Posted(task, msg.sender, terms.programId, terms.bundle);
    }

    /// @inheritdoc ITaskMarket
    function bid(TaskId task, uint128 price) external {
        Task storage entry = _at(task, Status.Bidding);
        uint64 until = entry.bidsUntil;
        if (block.timestamp > until) revert Errors.TooLate(until, block.timestamp);
        Terms storage terms = _terms[task];
        if (price > terms.budget) revert Errors.OutOfBounds("price", 0, terms.budget, price);
        uint32 extension = terms.extension;
        if (entry.bidder != address(0)) {
            Bids.requireLower(entry.price, price, entry.overtime, extension);
            _releaseAll(entry.stake);
        }
        (entry.bidder, entry.price) = (msg.sender, price);
        entry.stake = _lock(terms.stake);
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
        if (block.timestamp <= entry.bidsUntil) revert Errors.TooEarly(entry.bidsUntil, block.timestamp);
        if (entry.bidder == address(0)) {
            entry.status = Status.Refunded;
            emit Refunded(task, _releaseAll(entry.escrow), 0);
            return;
        }
        entry.status = Status.Training;
        entry.trainUntil = entry.bidsUntil + _terms[task].trainingPeriod;
        emit Assigned(task, entry.bidder, entry.price);
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
        if (size <= entry.size || size > most) revert Errors.TreeSize(entry.size + 1, most, size);
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
        entry.status = Status.Submitted;
        entry.result = result;
        _restartWindow(task, entry);
        entry.drawBlock = _nextDrawBlock();
        emit Submitted(task, root, result, entry.drawBlock);
    }

    // ------------------------------------------------------------------ exits

    /// @inheritdoc ITaskMarket
    function expire(TaskId task) external {
        Task storage entry = _at(task, Status.Training);
        if (block.timestamp <= entry.trainUntil) revert Errors.TooEarly(entry.trainUntil, block.timestamp);
        _requireNoGames(task, entry);
        entry.status = Status.Refunded;
        uint256 penalty = VAULT.burn(entry.stake, _terms[task].delayPenalty);
        _releaseAll(entry.stake);
        emit Refunded(task, _releaseAll(entry.escrow), penalty);
    }

    /// @inheritdoc ITaskMarket
    function settle(TaskId task) external {
        Task storage entry = _at(task, Status.Submitted);
        _requireWindowOver(entry);
        _requireNoGames(task, entry);
        if (!board.satisfied(task)) revert Errors.NotSatisfied(task);
        entry.status = Status.Settled;
        IAuditBoard.Duty[] memory duties = board.dutiesOf(task);
        Terms storage terms = _terms[task];
        uint256 fee = terms.auditFee;
        uint256 reserve = Fees.reserve(fee, terms.verifiers, terms.segmentsPerVerifier);
        (uint256 each, uint256 toSolver) = Shares.settle(entry.price, reserve, fee, Fees.attested(duties));
        uint256 escrow = entry.escrow;
        _payVerifiers(escrow, duties, each);
        uint256 paid = VAULT.pay(escrow, entry.bidder, toSolver);
        _releaseAll(escrow);
        _releaseAll(entry.stake);
        emit Settled(task, entry.bidder, paid);
    }

    /// @inheritdoc ITaskMarket
    function voidTask(TaskId task) external {
        Task storage entry = _at(task, Status.Submitted);
        _requireWindowOver(entry);
        _requireNoGames(task, entry);
        // Before the draw the task waits: anyone may draw or, when the block's hash is gone, report the draw missed.
        bool undrawn = board.drawnAt(task) == 0;
        bool hopeless = undrawn ? board.drawLost(task) : !board.satisfied(task);
        if (!hopeless) revert Errors.NotVoidable(task);
        entry.status = Status.Void;
        // Whoever is never audited must not get its stake back: letting every draw pass would be a try for nothing.
        uint256 penalty;
        if (undrawn) penalty = VAULT.burn(entry.stake, type(uint256).max);
        else _releaseAll(entry.stake);
        emit Voided(task, _releaseAll(entry.escrow), penalty);
    }

    // ------------------------------------------------------------------ hooks of the game

    /// @inheritdoc ITaskMarket
    function gameOpened(TaskId task) external only(game) returns (Played memory played) {
        Task storage entry = _existing(task);
        bool submitted = entry.status == Status.Submitted;
        if (!submitted && (entry.status != Status.Training || entry.size == 0)) {
            revert Errors.WrongStatus(task, entry.status);
        }
        uint64 until = submitted ? entry.challengeUntil : entry.trainUntil;
        if (block.timestamp > until) revert Errors.TooLate(until, block.timestamp);
        ++entry.openGames;
        Terms storage terms = _terms[task];
        (played.root, played.size) = (entry.root, entry.size);
        (played.segmentSteps, played.stateTensors) = (terms.segmentSteps, terms.stateTensors);
        played.clock = uint40(terms.clock) + terms.replayAllowance;
    }

    /// @inheritdoc ITaskMarket
    function gameClosed(TaskId task) external only(game) {
        --_existing(task).openGames;
    }

    /// @inheritdoc ITaskMarket
    function convict(TaskId task, address challenger, uint256 reward) external only(game) {
        Task storage entry = _existing(task);
        if (entry.status != Status.Training && entry.status != Status.Submitted) {
            revert Errors.WrongStatus(task, entry.status);
        }
        entry.status = Status.Slashed;
        --entry.openGames;
        (uint256 stake, uint256 rewarded) = VAULT.slash(
            entry.stake, challenger, reward, entry.submitter, _terms[task].restitution, entry.escrow
        );
        emit Slashed(task, entry.bidder, challenger, stake, rewarded);
    }

    // ------------------------------------------------------------------ hooks of the audit board

    /// @inheritdoc ITaskMarket
    function fixDrawBlock(TaskId task) external only(address(board)) returns (uint64 drawBlock) {
        Task storage entry = _at(task, Status.Submitted);
        _restartWindow(task, entry);
        entry.drawBlock = drawBlock = _nextDrawBlock();
        emit DrawBlockFixed(task, drawBlock);
    }

    /// @inheritdoc ITaskMarket
    function payDrawer(TaskId task, address drawer) external only(address(board)) {
        Task storage entry = _at(task, Status.Submitted);
        _restartWindow(task, entry);
        VAULT.pay(entry.escrow, drawer, _parameters.drawFee);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc ITaskMarket
    function taskOf(TaskId task) external view returns (Task memory) {
        return _existing(task);
    }

    /// @inheritdoc ITaskMarket
    function termsOf(TaskId task) external view returns (Terms memory) {
        _existing(task);
        return _terms[task];
    }

    /// @inheritdoc ITaskMarket
    function solverOf(TaskId task) external view returns (address) {
        return _tasks[task].status == Status.Bidding ? address(0) : _tasks[task].bidder;
    }

    /// @inheritdoc ITaskMarket
    function programOf(TaskId task) external view returns (bytes32) {
        return _terms[task].programId;
    }

    /// @inheritdoc ITaskMarket
    function constantsOf(TaskId task) external view returns (bytes32 root, uint32 size) {
        return (_terms[task].constantsRoot, _terms[task].constants);
    }

    /// @inheritdoc ITaskMarket
    function parameters() external view returns (Parameters memory) {
        return _parameters;
    }

    /// @inheritdoc ITaskMarket
    function tasks() external view returns (uint256) {
        return _newest;
    }

    // ------------------------------------------------------------------ inside

    function _only(address due) private view {
        if (msg.sender != due) revert Errors.NotAllowed(due, msg.sender);
    }

    /// @dev Every task that was posted has a status.
    function _existing(TaskId task) private view returns (Task storage entry) {
        entry = _tasks[task];
        if (entry.status == Status.None) revert Errors.UnknownTask(task);
    }

    /// @dev Locks free tokens of the caller. Locks are counted one by one, so 48 bits hold their numbers.
    function _lock(uint256 amount) private returns (uint48) {
        return uint48(VAULT.lock(msg.sender, amount));
    }

    function _at(TaskId task, Status status) private view returns (Task storage entry) {
        entry = _existing(task);
        if (entry.status != status) revert Errors.WrongStatus(task, entry.status);
    }

    /// @dev The task, if the caller is its solver and in time.
    function _training(TaskId task) private view returns (Task storage entry) {
        entry = _at(task, Status.Training);
        _only(entry.bidder);
        if (block.timestamp > entry.trainUntil) revert Errors.TooLate(entry.trainUntil, block.timestamp);
    }

    function _requireWindowOver(Task storage entry) private view {
        uint64 until = entry.challengeUntil;
        if (block.timestamp <= until) revert Errors.TooEarly(until, block.timestamp);
    }

    function _requireNoGames(TaskId task, Task storage entry) private view {
        if (entry.openGames != 0) revert Errors.GamesOpen(task, entry.openGames);
    }

    /// @dev The challenge period begins now.
    function _restartWindow(TaskId task, Task storage entry) private {
        entry.challengeUntil = uint64(block.timestamp) + _terms[task].challengePeriod;
    }

    /// @dev The block that seeds a draw if it is fixed now.
    function _nextDrawBlock() private view returns (uint64) {
        return uint64(block.number) + _parameters.drawDelay;
    }

    function _releaseAll(uint256 lock) private returns (uint256) {
        return VAULT.release(lock, type(uint256).max);
    }

    /// @dev The board lists the duties of one draw side by side, so a verifier is paid once for each time it was drawn.
    function _payVerifiers(uint256 escrow, IAuditBoard.Duty[] memory duties, uint256 each) private {
        uint256 due;
        for (uint256 i; i < duties.length; ++i) {
            if (duties[i].attested) due += each;
            bool last = i + 1 == duties.length || duties[i + 1].verifier != duties[i].verifier;
            if (last && due != 0) {
                VAULT.pay(escrow, duties[i].verifier, due);
                due = 0;
            }
        }
    }
}
