// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MapHints} from "../types/Hints.sol";
import {TaskId} from "../types/Ids.sol";
import {Audit, Offer, PendingDraw, Registration, Seat} from "../types/Seats.sol";

/// @title Registered verifiers, draws of seats, attestations.
/// @notice A draw is asked for before its round of the beacon is published, and depends on nothing that happens later. All
/// draws are one queue, in the order in which they were asked for; only the first can be executed, by anyone, at any
/// later time.
interface IAuditBoard {
    /// @notice The account can be drawn for tasks that are posted from now on.
    event Registered(address indexed account, uint8 level, Offer offer);
    /// @notice The account is not in draws that are asked for from now on; its stake is free after `until`.
    event Resigned(address indexed account, uint64 until);
    /// @notice The account's stake is back in its free balance.
    event Left(address indexed account);
    /// @notice The suspended account can be drawn again.
    event Resumed(address indexed account);
    /// @notice Draw number `number` of the task, 1 the first, is asked for, by this round: of the seats whose bits are set (level 0), or of
    /// looks of this level in the slots whose bits are set, 0: the draw picks them; or of a jury (level 5).
    event DrawAsked(TaskId indexed task, uint8 number, uint8 level, uint64 round, uint32 seats);
    /// @notice The draw was executed with this seed.
    event Drawn(TaskId indexed task, uint8 number, bytes32 seed, address indexed drawer);
    /// @notice The account is to replay the segments of the seat, or of the look, and to attest by `until`; or, number 160 + slot, to
    /// fetch what a claim is about, and to vote. Zero: nobody was found.
    event Seated(TaskId indexed task, uint256 indexed seat, address indexed account, uint64 until);
    /// @notice The seat's account replayed its segments, and challenges what it did not find as committed. `digest` is of all states
    /// that it passed, under a salt with this hash. Or a juror's vote: zeros are a no.
    event Attested(
        TaskId indexed task, uint256 indexed seat, address indexed account, bytes32 digest, bytes32 saltHash
    );
    /// @notice The account was silent: it lost `penalty` and is suspended.
    event Silent(TaskId indexed task, uint256 indexed seat, address indexed account, uint256 penalty);
    /// @notice The account's seat binds it no longer.
    event Released(TaskId indexed task, uint256 indexed seat, address indexed account);

    // ------------------------------------------------------------------ accounts

    /// @notice Locks 2^level stake units of the caller, level 15 at most. One registration per account.
    function register(uint8 level, Offer calldata offer) external;

    /// @notice Takes the caller out of draws that are asked for from now on.
    function resign() external;

    /// @notice Who resigned: the stake goes back to its free balance, once the unbonding period is over and it has no seat.
    function quit() external;

    /// @notice Anyone who was silent, or informed of: makes its stake whole from its free balance and can be drawn
    /// again.
    function resume() external;

    // ------------------------------------------------------------------ draws

    /// @notice TaskMarket only: the accounts that are registered now are those that the task's draws choose from.
    function snapshot(TaskId task) external;

    /// @notice TaskMarket only: asks for the task's first draw, of all of its `verifiers` seats.
    function askFirstDraw(TaskId task, uint256 verifiers) external returns (uint64 round);

    /// @notice Anyone: asks again for a draw of the seats, or of the looks, that are neither attested nor in time. A silent account loses
    /// the fee of a seat and the draw fee, which pays the draw unless an informed seat has left one; it is suspended. At most 8 draws
    /// of a task's seats are paid by its escrow. Looks that are silent in the third draw of their level are given up.
    function redraw(TaskId task) external;

    /// @notice Anyone: executes the first draw of the queue, which must be the task's.
    /// @param signature Of the draw's round. @param hints As in `IBeacon.word`.
    function draw(TaskId task, bytes calldata signature, MapHints[2] calldata hints) external;

    /// @notice Anyone: a draw of looks, or of a jury that a look asked for, was not executed within the stall period after its round. No more looks
    /// are drawn, and the jury is none; the caller has the draw fee if the escrow owes it.
    function lapse(TaskId task) external;

    /// @notice The account of a seat or a look, once: "I replayed its segments, I challenge what is not as committed, and, in a seat, I hold
    /// the result". When the last seat, or look of a level, attests, looks are asked for, if the terms have any. A look is paid here.
    /// A juror, `seat` 160 + slot, votes: "I have the item", or, with zeros, "I could not fetch it". A claimant waits for its jury.
    /// @param digest Of all states that it passed and, of a seat, of the result, under its salt (audit.md section 4); of a
    /// juror, of the item.
    /// @param saltHash keccak256 of the salt. Until the round of the first looks is published who shows a seat's salt has half of its lock.
    function attest(TaskId task, uint256 seat, bytes32 digest, bytes32 saltHash) external;

    /// @notice Juries only: the account of this seat, or look, claims that data are withheld; it is in time and not
    /// attested, and no jury of the task is open. Asks for the draw of that many jurors, which the lock `purse` pays.
    /// Reverts where the task has had 128 draws.
    function askJury(TaskId task, uint256 seat, uint256 jurors, uint48 purse) external;

    /// @notice Juries only: the jury is over. Anyone who was silent in it is punished as in a seat, all others are
    /// free. If the task `goesOn`, the time for attestations, challenge window and stall period begin again. The task
    /// must be Submitted.
    function endJury(TaskId task, bool goesOn) external;

    /// @notice Looks only: the seat's salt was shown. Half of the seat's lock, rounded down, goes to `to`; the rest burns but for a draw
    /// fee, which stays for the task's next draw, unless there is one. The account is suspended and the seat empty. Reverts
    /// unless the task is Submitted, the seat attested, and the round of the first looks not published.
    function caught(TaskId task, uint256 seat, address to) external returns (address account, uint256 paid);

    /// @notice Looks and juries only: what a seat, a look or a juror attested is false, or was not shown. Half of the seat's lock, rounded down, goes to `to`,
    /// the rest burns; all of it where `to` is zero. The account is suspended and paid no fee; it stays in the seat. Once a seat.
    function forfeit(TaskId task, uint256 seat, address to) external returns (address account, uint256 paid);

    /// @notice Anyone: the task is over, so the seat binds its account no longer.
    function release(TaskId task, uint256 seat) external;

    /// @notice Anyone: the task is over without the draw that an informed seat has left a fee for, so the fee burns.
    function burnPurse(TaskId task) external;

    // ------------------------------------------------------------------ views

    /// @notice keccak256(abi.encode(digest, saltHash)) of an attested seat; 0 of any other.
    function attestationOf(TaskId task, uint256 seat) external view returns (bytes32);

    /// @notice Registrations that have not resigned.
    function registered() external view returns (uint32);

    /// @notice An account's registration; empty if it has none.
    function registrationOf(address account) external view returns (Registration memory);

    /// @notice Where the task's draws stand.
    function auditOf(TaskId task) external view returns (Audit memory);

    /// @notice The task's V seats; empty before its first draw.
    function seatsOf(TaskId task) external view returns (Seat[] memory);

    /// @notice The task's looks that somebody was drawn for, and their numbers, ascending; without those that were given up.
    function looksOf(TaskId task) external view returns (uint256[] memory numbers, Seat[] memory looks);

    /// @notice One of them, or look 32 level + slot, or juror 160 + slot; empty before its draw, and if there is no such seat.
    function seatOf(TaskId task, uint256 seat) external view returns (Seat memory);

    /// @notice The jury of the task: number + 1 of the seat that claims, 0 if there is no jury; whether its draw is
    /// still to come; the last second for votes; the slots that voted yes and no, a bit for each.
    function juryOf(TaskId task)
        external
        view
        returns (uint256 claimant, bool pending, uint64 until, uint256 yes, uint256 no);

    /// @notice When looks of the task were last picked, 0 before, and the seed of its first draw: what `auditOf` has too.
    function pickedAt(TaskId task) external view returns (uint64 time, bytes32 seed);

    /// @notice Reverts unless all of the `verifiers` seats are attested, no draw is asked for, no look awaited, and no accusation open.
    function requireAudited(TaskId task, uint256 verifiers) external view;

    /// @notice Reverts unless a seat is empty that no draw can fill any more: the escrow has paid its draws, and no informed seat has left
    /// another's fee. So nobody ends a task by emptying his own seat.
    function requireVoidable(TaskId task) external view;

    /// @notice From when on the stall period of the task counts: the time of its first draw, of that draw's round before it, or of the
    /// latest informer, who else would leave no time to draw the seat again, or of the end of the latest jury. While a jury's draw is asked
    /// for the time of its round. Reverts if every seat is attested, and while a jury is open.
    function stallsFrom(TaskId task) external view returns (uint64);

    /// @notice The segments of a seat, which follow from the seed of the first draw (audit.md section 2); the one of a look.
    /// Reverts before the first draw.
    function segmentsOf(TaskId task, uint256 seat) external view returns (uint32[] memory);

    /// @notice The first draw of the queue; its task is 0 if there is none.
    function firstDraw() external view returns (PendingDraw memory);
}
