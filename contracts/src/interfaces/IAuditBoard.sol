// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MapHints} from "../types/Hints.sol";
import {TaskId} from "../types/Ids.sol";
import {Audit, Offer, PendingDraw, Registration, Seat} from "../types/Seats.sol";

/// @title Registered verifiers, draws of seats, looks and jurors, and attestations.
/// @notice A draw is requested before its beacon round is published. It depends on nothing that happens
/// later, except that it passes over an account that has left. All draws form one queue, in the order of the
/// requests. Only the first can be executed, by anyone, at any time after its round is published.
interface IAuditBoard {
    /// @notice The account can be drawn for tasks that are posted from now on.
    event Registered(address indexed account, uint8 level, Offer offer);
    /// @notice The account takes no part in draws that are requested in a later second. It can take its stake
    /// back after `until`, once no seat binds it.
    event Resigned(address indexed account, uint64 until);
    /// @notice The account's stake is back in its free balance.
    event Left(address indexed account);
    /// @notice The account is no longer suspended and can be drawn again, unless it has resigned.
    event Resumed(address indexed account);
    /// @notice Draw `number` of the task (counted from 1) was requested for this beacon round. Level 0: a
    /// draw for the seats whose bits are set in `seats`. Levels 1 to 4: looks of that level, in the slots
    /// whose bits are set; 0 means that the draw picks the slots. Level 5: a draw of a jury.
    event DrawAsked(TaskId indexed task, uint8 number, uint8 level, uint64 round, uint32 seats);
    /// @notice The draw was executed with this seed.
    event Drawn(TaskId indexed task, uint8 number, bytes32 seed, address indexed drawer);
    /// @notice The account must replay the segments of the seat or look and attest by `until`. A juror,
    /// number 160 + slot, must instead fetch the claimed item and vote by then. An account of zero means that
    /// nobody was found.
    event Seated(TaskId indexed task, uint256 indexed seat, address indexed account, uint64 until);
    /// @notice The seat's account says that it replayed its segments, and challenges anything that differs
    /// from the solver's commitment. `digest` covers all states of the replay, under a salt with this hash.
    /// For a juror, the two values are its vote: zeros mean no.
    event Attested(
        TaskId indexed task, uint256 indexed seat, address indexed account, bytes32 digest, bytes32 saltHash
    );
    /// @notice The account did not respond in time: it lost `penalty` and is suspended.
    event Silent(TaskId indexed task, uint256 indexed seat, address indexed account, uint256 penalty);
    /// @notice The account's seat no longer binds it.
    event Released(TaskId indexed task, uint256 indexed seat, address indexed account);

    // ------------------------------------------------------------------ accounts

    /// @notice Locks 2^level stake units of the caller's free balance; `level` is at most 15. One
    /// registration per account.
    function register(uint8 level, Offer calldata offer) external;

    /// @notice Takes the caller out of draws that are requested in a later second.
    function resign() external;

    /// @notice For an account that resigned: returns its stake to its free balance, once the unbonding period
    /// is over and no seat binds it. No seat binds a suspended account.
    function quit() external;

    /// @notice For a suspended account: tops its stake up from its free balance and makes it eligible for
    /// draws again, unless it has resigned.
    function resume() external;

    // ------------------------------------------------------------------ draws

    /// @notice TaskMarket only: fixes the currently registered accounts as the pool of the task's draws.
    function snapshot(TaskId task) external;

    /// @notice TaskMarket only: requests the task's first draw, for all of its `verifiers` seats.
    function askFirstDraw(TaskId task, uint256 verifiers) external returns (uint64 round);

    /// @notice Anyone: requests a new draw for the seats, or the looks, that are not attested and whose time
    /// is over. A silent account is suspended and loses the fee of a seat and the draw fee. The draw fee of
    /// the first silent account pays for the draw, unless an informed seat has left one. The escrow pays for
    /// at most 8 draws of a task's seats. Looks still unattested after the third draw of their level, or in a
    /// task that has had 255 draws, are given up.
    function redraw(TaskId task) external;

    /// @notice Anyone: executes the first draw of the queue, which must belong to the task.
    /// @param signature The beacon's signature of the draw's round.
    /// @param hints As in `IBeacon.word`.
    function draw(TaskId task, bytes calldata signature, MapHints[2] calldata hints) external;

    /// @notice Anyone: cancels a draw of looks, or of a jury that a look asked for, if it was not executed
    /// within the stall period after its round. (A late jury for a seat's claim ends by `ITaskMarket.stall`.)
    /// No look is awaited any more, and the jury is cancelled. The caller receives the draw fee if the escrow
    /// owes it.
    function lapse(TaskId task) external;

    /// @notice The account of a seat or look, once: "I replayed its segments and challenge anything that
    /// differs from the commitment; in a seat, I also hold the result". When the last seat, or the last look
    /// of a level, attests, looks are requested if the terms have any. A look is paid here. A juror (`seat`
    /// is 160 + slot) votes: "I have the item", or, with zeros, "I could not fetch it". A claimant cannot
    /// attest until its jury has ended.
    /// @param digest For a seat, covers all states of its replay and the result, under its salt. For a
    /// look, covers the states of its replay (audit.md sections 4 and 6). For a juror, covers the item.
    /// @param saltHash keccak256 of the salt. Until the round of the first looks is published, anyone who
    /// reveals a seat's salt receives half of its lock.
    function attest(TaskId task, uint256 seat, bytes32 digest, bytes32 saltHash) external;

    /// @notice Juries only: the account of this seat or look claims that data are withheld. The caller has
    /// checked that the account is in time and has not attested, and that the task has no open jury. Requests
    /// the draw of `jurors` jurors, paid by the lock `purse`. Reverts if the task has had 128 draws.
    function askJury(TaskId task, uint256 seat, uint256 jurors, uint48 purse) external;

    /// @notice Juries only: the jury is over. Silent jurors are penalised as in a seat. Jurors that have lost
    /// their lock stay suspended; all others are free. If the task `goesOn`, the attestation period, the
    /// challenge window and the stall period restart. The task must be Submitted.
    function endJury(TaskId task, bool goesOn) external;

    /// @notice Looks only: the seat's salt was revealed. Half of the seat's lock, rounded down, goes to `to`;
    /// the rest burns, except that a draw fee is kept for the task's next draw unless one is already kept.
    /// The account is suspended and the seat becomes empty. Reverts unless the task is Submitted, the seat is
    /// attested, and the round of the first looks is not yet published by the block's time.
    function caught(TaskId task, uint256 seat, address to) external returns (address account, uint256 paid);

    /// @notice Looks and juries only: the attestation of a seat or look, or a juror's yes, is false or was
    /// not opened. Half of its lock, rounded down, goes to `to` and the rest burns; if `to` is zero, all of
    /// it burns. The account is suspended but keeps the seat, for which it is paid no fee at the end. At most
    /// once per seat.
    function forfeit(TaskId task, uint256 seat, address to) external returns (address account, uint256 paid);

    /// @notice Anyone: the task is no longer Submitted, so the seat no longer binds its account.
    function release(TaskId task, uint256 seat) external;

    /// @notice Anyone: burns the draw fee that an informed seat left, if the task is no longer Submitted and
    /// no draw used it.
    function burnPurse(TaskId task) external;

    // ------------------------------------------------------------------ views

    /// @notice keccak256(abi.encode(digest, saltHash)) of an attested seat or look, or of a juror that voted
    /// yes; 0 for any other.
    function attestationOf(TaskId task, uint256 seat) external view returns (bytes32);

    /// @notice Number of registrations that have not resigned.
    function registered() external view returns (uint32);

    /// @notice An account's registration; empty if it has none.
    function registrationOf(address account) external view returns (Registration memory);

    /// @notice State of the task's draws.
    function auditOf(TaskId task) external view returns (Audit memory);

    /// @notice The task's V seats; empty before its first draw.
    function seatsOf(TaskId task) external view returns (Seat[] memory);

    /// @notice The task's looks that have an account, and their numbers, ascending. A look whose account was
    /// silent is left out until it is drawn again.
    function looksOf(TaskId task) external view returns (uint256[] memory numbers, Seat[] memory looks);

    /// @notice A seat, look 32 level + slot, or juror 160 + slot; empty before its draw and for a number out
    /// of range.
    function seatOf(TaskId task, uint256 seat) external view returns (Seat memory);

    /// @notice The jury of the task: the number + 1 of the claiming seat, 0 without a jury; whether its draw
    /// is pending; the last second for votes; and the slots that voted yes and no, one bit each.
    function juryOf(TaskId task)
        external
        view
        returns (uint256 claimant, bool pending, uint64 until, uint256 yes, uint256 no);

    /// @notice When looks of the task were last picked (0 before), and the seed of its first draw. `auditOf`
    /// returns both too.
    function pickedAt(TaskId task) external view returns (uint64 time, bytes32 seed);

    /// @notice Reverts unless all `verifiers` seats are attested, no draw is pending, no look is awaited and
    /// no accusation is open.
    function requireAudited(TaskId task, uint256 verifiers) external view;

    /// @notice Reverts unless a seat is empty, the escrow pays for at least 8 draws (those of looks
    /// included), and no draw fee left by an informed seat remains. So an account cannot end a task by
    /// emptying its own seat.
    function requireVoidable(TaskId task) external view;

    /// @notice Start of the task's stall period: the time of the first draw, or of that draw's round while it
    /// is pending. A later informer or jury moves the start to the time when the seat was emptied or the jury
    /// ended; otherwise an informer would leave no time to draw the seat again. While a jury's draw is
    /// pending, the time of its round counts. Reverts if every seat is attested, and from a jury's draw until
    /// its verdict.
    function stallsFrom(TaskId task) external view returns (uint64);

    /// @notice The segments of a seat, which follow from the seed of the first draw (audit.md section 2), or
    /// the one segment of a look. Reverts before the first draw.
    function segmentsOf(TaskId task, uint256 seat) external view returns (uint32[] memory);

    /// @notice The first draw in the queue; its task is 0 if the queue is empty.
    function firstDraw() external view returns (PendingDraw memory);
}
