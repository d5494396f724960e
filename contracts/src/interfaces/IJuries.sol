// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../types/Ids.sol";
import {Leaf} from "../types/Openings.sol";

/// @title Claims that data are withheld: a jury then tries to fetch the data too.
/// @notice Delivery cannot be proved to a chain, so the chain asks other accounts. If the account of a seat
/// or a look cannot fetch an *item*, it claims that the item is withheld. Items 0 ... K are the states with
/// these numbers; item K + 1 is the constants tree. Jurors, as many as the terms' `jurors`, are drawn like
/// seats. Their numbers are 160 + slot. Their votes are attestations: a digest of the whole item under a
/// salt (audit.md section 7), or zeros. A task has one jury at a time.
interface IJuries {
    /// @notice Verdict of a jury: a majority has the item, a majority could not get it, or neither.
    enum Verdict {
        Available,
        Withheld,
        Undecided
    }

    /// @notice A claim that is not yet judged. `account` is zero if there is none; `bond` is the lock that
    /// pays the jury.
    struct Claim {
        // ---- slot 0, 8 bits are free
        address account;
        uint48 bond;
        /// Seat or look of the claimant.
        uint8 seat;
        uint32 item;
        // ---- slot 1, 120 bits are free: the objection, zeros before it
        /// Last second for the jurors' openings.
        uint40 until;
        /// The chunk that was named.
        uint32 tensor;
        uint32 walk;
        /// Jurors that have opened the chunk: a bit for each slot.
        uint32 opened;
    }

    /// @notice The chunk that an objection names, proved under the item and under the juror's digest. All
    /// paths are siblings, bottom first.
    struct Opening {
        bytes chunk;
        /// Path of the chunk in the tensor.
        bytes32[] path;
        /// The tensor in the item.
        Leaf tensor;
        /// The item, a state, in the segment tree; empty if the item is the constants tree.
        Leaf state;
        /// Path of the salted leaf in the salted tensor, as long as `path`.
        bytes32[] saltedPath;
        /// Path of the salted tensor in the digest, as long as the path in `tensor`.
        bytes32[] saltedTensor;
    }

    /// @notice The account claims that it cannot fetch the item. A jury is requested.
    event Claimed(TaskId indexed task, uint256 indexed seat, address indexed account, uint32 item);
    /// @notice The claimant still does not have the item: every juror that voted yes must open this chunk of
    /// it by `until`.
    event Objected(TaskId indexed task, uint32 tensor, uint32 walk, uint64 until);
    /// @notice The juror has opened the chunk.
    event Opened(TaskId indexed task, uint256 indexed juror, address indexed account);
    /// @notice The juror voted yes and did not open the chunk: its lock is burned.
    event Unopened(TaskId indexed task, uint256 indexed juror, address indexed account);
    /// @notice The verdict, with the number of jurors whose yes counts and of those that voted no.
    event Judged(
        TaskId indexed task, uint256 indexed seat, uint32 item, Verdict verdict, uint256 yes, uint256 no
    );
    /// @notice There will be no verdict; the account has its bond back.
    event Dropped(TaskId indexed task, uint256 indexed seat, address indexed account);

    /// @notice The account of a seat or a look that is in time and has not attested: "I cannot fetch this".
    /// Each registration may claim at most `segmentsPerVerifier` + 4 times in a seat, enough for each item
    /// that the seat needs. Locks `auditFee` as a bond and a draw fee from the free balance, and requests the
    /// draw of the jury. The account cannot attest until the jury has ended. Reverts unless the task is
    /// Submitted and its terms have juries, while a jury is open, and if the task has had 128 draws.
    function claim(TaskId task, uint256 seat, uint32 item) external;

    /// @notice The claimant, once, within `moveTime` after the voting period: "I still do not have it".
    /// Reverts if nobody voted yes, or if more than half of the jury voted no, because then no yes is paid.
    /// @param tensor Index of the tensor within the item.
    /// @param walk Names a chunk of the tensor: from the root of the tensor's tree down, bits 31, 30, ...
    /// select the left (0) or the right (1) child, until a leaf. A tree of chunks is at most 30 deep, so
    /// every walk ends at a leaf.
    function object(TaskId task, uint32 tensor, uint32 walk) external;

    /// @notice Within `moveTime` of the objection: shows that a juror that voted yes has the chunk that the
    /// objection names. In practice its account does this, since the secret is needed.
    /// @param juror 160 + slot.
    /// @param secret The secret that the juror's salt is derived from.
    /// @param digest The digest that the juror attested.
    function open(TaskId task, uint256 juror, bytes32 secret, bytes32 digest, Opening calldata opening)
        external;

    /// @notice Anyone, once the outcome is final: after the voting period if nobody may object, otherwise
    /// after the time to object or to open. A juror that owed an opening and did not give it loses its lock,
    /// which burns, and its yes no longer counts. *Available* if the remaining yes votes are more than half
    /// of the jury; those jurors are paid. *Withheld* if the no votes are more than half; those jurors are
    /// paid, and the market continues (`ITaskMarket.withheld`). Otherwise *undecided*: remaining yes votes
    /// and no votes are paid. Each paid juror gets a share of the bond, auditFee / jurors, rounded down; the
    /// rest burns. Unless data are withheld, the attestation period restarts. A silent juror loses what a
    /// silent seat loses.
    function close(TaskId task) external;

    /// @notice Anyone: ends a claim whose task is no longer Submitted or whose jury's draw lapsed. The
    /// claimant gets its bond back.
    function drop(TaskId task) external;

    /// @notice The task's claim; zeros if there is none.
    function claimOf(TaskId task) external view returns (Claim memory);
}
