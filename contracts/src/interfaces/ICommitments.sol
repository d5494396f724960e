// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId, SegmentIndex, TaskId} from "../types/Ids.sol";

/// @title Priority commitments to challenges with their bonds, and what a conviction pays to seats.
/// @notice A party that finds a difference commits first, so that nobody can copy its challenge. It opens the
/// commitment in a later block within the opening period, or loses the bond. A seat speaks up by making a
/// commitment or playing a game. The commitment or game must be on one of the seat's own segments, or must
/// not name a segment yet. After a conviction, every seat that had already spoken up can get its bond back,
/// and can be paid the cost of a game and its fee out of the stake. It does not matter who convicted, or on
/// which segment. So an accomplice of the solver that convicts first cannot take these payments from such a
/// seat.
interface ICommitments {
    /// @notice A commitment to challenge the task was made; its bond is locked.
    event Committed(
        TaskId indexed task, bytes32 indexed commitment, address indexed challenger, uint256 bond
    );
    /// @notice The commitment was opened in time, after the task was convicted: its bond is returned.
    event OpenedLate(TaskId indexed task, bytes32 indexed commitment, address indexed challenger);
    /// @notice The commitment was not opened in time: its bond was burned.
    event Forfeited(
        TaskId indexed task, bytes32 indexed commitment, address indexed challenger, uint256 bond
    );
    /// @notice The seat's account got `amount` out of the convicted solver's stake.
    event Compensated(TaskId indexed task, uint256 indexed seat, address indexed account, uint256 amount);

    /// @notice Makes the commitment keccak256(abi.encode(chainid, this, task, segment, challenger, salt)),
    /// with segment 2^32 - 1 for "not yet known". Locks `bondOf`. Reverts unless the task can be challenged
    /// now.
    /// @param seat The caller's seat of the task; 255 for a caller without a seat.
    function commit(TaskId task, uint8 seat, bytes32 commitment) external;

    /// @notice DisputeGame only: uses up the challenger's commitment. Returns the bond's lock and the block
    /// in which the commitment was made.
    function open(TaskId task, SegmentIndex segment, address challenger, bytes32 salt)
        external
        returns (uint48 lock, uint40 madeIn);

    /// @notice DisputeGame only: a game of the task was dismissed or dropped and no longer holds a bond.
    function dismissed(TaskId task) external;

    /// @notice Challenger: opens a commitment after the task was convicted, within the commitment's opening
    /// period. Returns the bond. If `seat` names a seat, also pays what that seat is owed. The committed
    /// segment must then be one of the seat's segments, unless the commitment names none.
    /// @param seat The caller's seat of the task; 255 for a caller without a seat.
    function openLate(TaskId task, SegmentIndex segment, bytes32 salt, uint8 seat) external;

    /// @notice Anyone: the opening period of the commitment is over. Burns its bond, whether or not the task
    /// was convicted.
    function forfeit(address challenger, bytes32 commitment) external;

    /// @notice Anyone, after a conviction: pays the seat's account the cost of a game and its fee, because of
    /// a game that the account played. The game must be neither dismissed nor dropped, and be on a segment of
    /// the seat or on none yet. Each amount is paid once per seat; a seat that has lost its lock is paid no
    /// fee. Here and in `commit` and `openLate`, an account's look counts as a seat; a fee already paid for
    /// its attestation is not paid again.
    function compensate(TaskId task, uint8 seat, GameId game) external;

    /// @notice Anyone, after a conviction: pays the fee to the account of a seat that has attested, has not
    /// lost its lock, and does not have the convicted segment. A look is paid nothing here.
    function payFee(TaskId task, uint8 seat) external;

    /// @notice The bond that a commitment locks now. It is the bond of the terms while fewer than 16 bonds of
    /// the task are held, and each further one costs twice the one before. It does not double if the task is
    /// Unpaid, or for an account's first commitment from a seat. Bonds of unopened commitments and of games
    /// count.
    function bondOf(TaskId task, uint8 seat, address challenger) external view returns (uint256);

    /// @notice Number of the task's bonds: those of commitments that are neither opened nor forfeited, and
    /// those of games that were neither dismissed nor dropped.
    function held(TaskId task) external view returns (uint32);

    /// @notice Last second at which seats can claim from the stake of a convicted task.
    function claimsUntil(TaskId task) external view returns (uint64);
}
