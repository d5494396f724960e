// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {GameId, SegmentIndex, TaskId} from "../types/Ids.sol";

/// @title Priority commitments to challenges, with their bonds; and what a conviction pays to seats.
/// @notice Anyone who has found a difference commits first, so that nobody can copy its challenge, and opens the
/// commitment in a later block of its opening period, or loses the bond. On a conviction each seat that spoke up
/// before it, by a commitment or a game on its own segment, has its bond, what a game costs and its fee out of the
/// stake, no matter who convicted, and wherever. So an accomplice that convicts first takes nothing from it.
interface ICommitments {
    /// @notice A commitment to challenge the task was made; its bond is locked.
    event Committed(
        TaskId indexed task, bytes32 indexed commitment, address indexed challenger, uint256 bond
    );
    /// @notice The task had been convicted, the commitment was opened in time: its bond is back.
    event OpenedLate(TaskId indexed task, bytes32 indexed commitment, address indexed challenger);
    /// @notice The commitment was not opened in time: its bond was burned.
    event Forfeited(
        TaskId indexed task, bytes32 indexed commitment, address indexed challenger, uint256 bond
    );
    /// @notice The seat's account got `amount` out of the convicted solver's stake.
    event Compensated(TaskId indexed task, uint256 indexed seat, address indexed account, uint256 amount);

    /// @notice keccak256(abi.encode(chainid, this, task, segment, challenger, salt)), with segment 2^32 - 1 for "not yet known". Locks
    /// `bondOf`. Refused unless the task can be challenged now.
    /// @param seat The caller's seat of the task; 255 for a caller without one.
    function commit(TaskId task, uint8 seat, bytes32 commitment) external;

    /// @notice DisputeGame only: uses up the challenger's commitment; the bond's lock and the block that it was made in.
    function open(TaskId task, SegmentIndex segment, address challenger, bytes32 salt)
        external
        returns (uint48 lock, uint40 madeIn);

    /// @notice DisputeGame only: a game of the task was dismissed, its bond is lost.
    function dismissed(TaskId task) external;

    /// @notice Challenger: the task was convicted before the commitment was opened. Within its opening period: returns the bond; with a
    /// seat of the caller's, which must have the segment unless it is unknown, pays what the seat is owed.
    /// @param seat The caller's seat of the task; 255 for a caller without one.
    function openLate(TaskId task, SegmentIndex segment, bytes32 salt, uint8 seat) external;

    /// @notice Anyone: the opening period of the commitment is over; burns its bond, conviction or not.
    function forfeit(address challenger, bytes32 commitment) external;

    /// @notice Anyone, once the task is convicted: a game of the seat's account, neither dismissed nor dropped, on a segment of the seat, or on none yet.
    /// Pays the account what a game costs and its fee. Each is paid once a seat. A look of the account's is a seat here, and in `commit`
    /// and `openLate`; what its attestation was paid is not paid again.
    function compensate(TaskId task, uint8 seat, GameId game) external;

    /// @notice Anyone, once the task is convicted: the seat has attested, and does not have the convicted segment. Pays its account the
    /// fee.
    function payFee(TaskId task, uint8 seat) external;

    /// @notice What a commitment locks now: the terms' bond. Unless the task is Unpaid, or it is the first of a seat, it doubles with
    /// each bond of the task beyond the sixteenth that is held: of commitments that are not opened, and of games.
    function bondOf(TaskId task, uint8 seat, address challenger) external view returns (uint256);

    /// @notice Bonds of the task: of commitments that are neither opened late nor forfeited, and of their games, unless these were
    /// dismissed.
    function held(TaskId task) external view returns (uint32);

    /// @notice Last second for claims of seats on the stake of a convicted task.
    function claimsUntil(TaskId task) external view returns (uint64);
}
