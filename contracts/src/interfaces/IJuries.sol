// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TaskId} from "../types/Ids.sol";
import {Leaf} from "../types/Openings.sol";

/// @title Who cannot fetch what it needs claims so, and a jury tries to fetch it too.
/// @notice Delivery cannot be proved to a chain, so the chain asks others. The account of a seat or a look that cannot have an *item*
/// claims it: item 0 ... K is the state with that number, item K + 1 the constants tree. As many accounts as the terms' `jurors` are
/// drawn like seats; their numbers are 160 + slot, and their votes are attestations: a digest of the whole item under a salt
/// (audit.md section 7), or zeros. A task has one jury at a time.
interface IJuries {
    /// @notice What a jury finds: most of it has the item, most of it could not get it, or neither is most of it.
    enum Verdict {
        Available,
        Withheld,
        Undecided
    }

    /// @notice A claim that is not judged. `account` is zero if there is none; `bond` is the lock that pays the jury.
    struct Claim {
        // ---- slot 0, 8 bits are free
        address account;
        uint48 bond;
        /// Of the claimant: a seat, or a look.
        uint8 seat;
        uint32 item;
        // ---- slot 1, 120 bits are free: the objection, zeros before it
        /// Last second for the jurors' openings.
        uint40 until;
        /// The chunk that was named.
        uint32 tensor;
        uint32 walk;
        /// Jurors that have opened it: a bit for each slot.
        uint32 opened;
    }

    /// @notice The chunk that an objection names, under the item and under the juror's digest. All paths are siblings, bottom first.
    struct Opening {
        bytes chunk;
        /// Of the chunk in the tensor.
        bytes32[] path;
        /// The tensor in the item.
        Leaf tensor;
        /// The item, a state, in the segment tree; empty where the item is the constants tree.
        Leaf state;
        /// Of the salted leaf in the salted tensor: as many as in `path`.
        bytes32[] saltedPath;
        /// Of the salted tensor in the digest: as many as in `tensor`.
        bytes32[] saltedTensor;
    }

    /// @notice The account says that it cannot fetch the item. A jury is asked for.
    event Claimed(TaskId indexed task, uint256 indexed seat, address indexed account, uint32 item);
    /// @notice The claimant still does not have the item: every juror that voted yes opens this chunk of it by `until`.
    event Objected(TaskId indexed task, uint32 tensor, uint32 walk, uint64 until);
    /// @notice The juror has opened the chunk.
    event Opened(TaskId indexed task, uint256 indexed juror, address indexed account);
    /// @notice The juror voted yes and did not open the chunk: its lock is burned.
    event Unopened(TaskId indexed task, uint256 indexed juror, address indexed account);
    /// @notice The verdict, by that many jurors whose yes stands, and so many that voted no.
    event Judged(
        TaskId indexed task, uint256 indexed seat, uint32 item, Verdict verdict, uint256 yes, uint256 no
    );
    /// @notice There will be no verdict, and the account has its bond back.
    event Dropped(TaskId indexed task, uint256 indexed seat, address indexed account);

    /// @notice The account of a seat, or of a look, that is not attested and in time: "I cannot fetch this". At most `segmentsPerVerifier` + 4
    /// times, so it may claim each item that a seat needs. Locks, of its free balance, `auditFee` as a bond and a draw fee, and asks
    /// for the draw of the jury. It cannot attest until the verdict. Reverts unless the task is Submitted and its terms have
    /// juries, while a jury is open, and where the task has had 128 draws.
    function claim(TaskId task, uint256 seat, uint32 item) external;

    /// @notice The claimant, once, within `moveTime` after the time for votes: "I still do not have it". Reverts where nobody voted yes, and
    /// where more than half of the jury voted no: then no yes is paid.
    /// @param tensor Of the item. @param walk Names a chunk of it: from the root of the tensor's tree down bit 31, 30, ... is 0 to the
    /// left, 1 to the right, until a leaf. A tree of chunks is at most 30 deep, so every walk ends at one.
    function object(TaskId task, uint32 tensor, uint32 walk) external;

    /// @notice Within `moveTime` of the objection: a juror that voted yes has the chunk that the objection names. In practice its
    /// account: it needs the secret.
    /// @param juror 160 + slot. @param secret Of which its salt is made. @param digest That it attested.
    function open(TaskId task, uint256 juror, bytes32 secret, bytes32 digest, Opening calldata opening)
        external;

    /// @notice Anyone, when nothing can change what it does: after the time for votes if nobody may object, else after
    /// the time to object, or to open. A juror that owed an opening and did not give it loses its lock, which burns,
    /// and its yes stands no more. *Available* if the yes that stand are more than half of the jury: they are paid.
    /// *Withheld* if the no are: they are paid, and the market takes it from there (`ITaskMarket.withheld`). Otherwise
    /// *undecided*: yes that stand and no are paid. Each that is paid has its share of the bond, auditFee / jurors,
    /// rounded down; the rest burns. Unless data are withheld everybody's time to attest begins again. A silent juror
    /// loses what a silent seat loses.
    function close(TaskId task) external;

    /// @notice Anyone: the task is over, or the draw of the jury lapsed. The claimant has its bond back.
    function drop(TaskId task) external;

    /// @notice The task's claim; zeros if there is none.
    function claimOf(TaskId task) external view returns (Claim memory);
}
