// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The terms of a task, set by the submitter and fixed when the task is posted. Amounts are token
/// units, periods are seconds.
/// @dev Every root is stored with its size, because an RFC 9162 root alone does not bind the size.
struct Terms {
    // ---- slots 0 to 3
    /// Id of the step program (encoding.md section 4).
    bytes32 programId;
    /// Root of the constants tree: dataset tensors, then constants.
    bytes32 constantsRoot;
    /// State root r_0.
    bytes32 initialState;
    /// SHA-256 of the bundle's manifest.
    bytes32 bundleHash;
    // ---- slot 4
    /// Leaves of the constants tree.
    uint32 constants;
    /// Leaves of a state tree.
    uint32 stateTensors;
    /// K: checkpoints after the initial one.
    uint32 segments;
    /// C: steps in a segment.
    uint32 segmentSteps;
    /// Scalar operations of one step, recomputed by every bidder.
    uint64 stepOperations;
    /// Canonical bytes of one state, recomputed by every bidder.
    uint64 stateBytes;
    // ---- slot 5
    /// Highest price that may be bid; held in escrow together with the audit fees and draw fees.
    uint128 budget;
    /// S: locked by the solver when it submits.
    uint128 stake;
    // ---- slot 6: what a conviction pays at once
    /// Paid to the submitter out of the stake on top of its escrow; at most the budget.
    uint128 restitution;
    /// R: paid to the challenger whose game has priority on the convicted segment, whichever game convicts.
    /// If the game with priority was dismissed or dropped, or if no segment was selected, R is paid to the
    /// challenger that convicts. At most an eighth of the stake.
    uint128 reward;
    // ---- slot 7: what seats are paid
    /// Paid for each segment of an attested seat, and for an attested look. Also the bond of a claim of
    /// withheld data.
    uint128 auditFee;
    /// Cost of a game to one side, gas and replays. After a conviction it is paid out of the stake to each
    /// seat and look that spoke up. Also the bond of an accusation.
    uint128 gameCost;
    // ---- slot 8
    /// Locked by the best bidder. If the solver misses the deadline, half of it, rounded down, goes to the
    /// submitter and the rest burns.
    uint128 delayPenalty;
    /// Bidding ends this long after posting, or later (see `extension`).
    uint32 biddingPeriod;
    /// Submission is due this long after bidding ends.
    uint32 trainingPeriod;
    /// Challenges are accepted from the submission until this long after the first draw, and longer after
    /// later draws (`ITaskMarket.drawn`).
    uint32 challengePeriod;
    /// Attestations are due this long after the latest draw was executed, or after the latest verdict of a
    /// jury.
    uint32 attestPeriod;
    // ---- slot 9, 48 bits are free
    /// Bidding stays open for at least this long after every bid (libraries/Bids.sol).
    uint32 extension;
    /// Each side's time for all of its moves in a game, besides `replayAllowance`. It should include a
    /// margin for time lost to censorship.
    uint32 clock;
    /// Added to the clock of each side: the time to replay a segment in each of the games that are played at
    /// once.
    uint32 replayAllowance;
    /// V: replay seats.
    uint16 verifiers;
    /// q: segments of a seat.
    uint16 segmentsPerVerifier;
    /// Version of the arithmetic; the Arbiter implements one.
    uint16 arithmetic;
    /// w: a digest hashes about one chunk in w of each state. A power of two, at most 64 and at most
    /// segmentSteps.
    uint8 thinning;
    /// Time for each answer that a look or an accusation requires of a seat, for a claimant to object, and
    /// for a juror to open a chunk.
    uint32 moveTime;
    /// Probability, in hundredths of a percent, that a segment of an attested seat is looked at, and that a
    /// look is itself looked at. 0 if there are no looks.
    uint16 lookChance;
    /// J: accounts that judge whether data are withheld; 0 if there are no juries.
    uint8 jurors;
    // ---- slot 10
    /// Part of its account's stake that a seat, look or juror can lose.
    uint128 seatLock;
    /// Locked by a challenger when it commits. Once 16 of the task's bonds are held, each further one costs
    /// twice the one before, with exceptions (`ICommitments.bondOf`). If the challenger's time in a game runs
    /// out, half of the bond goes to the solver and the rest burns.
    uint128 bond;
    // ---- slot 11, 128 bits are free
    /// Replaces `reward` if the task was Unpaid when it was convicted: for the party that trained it again.
    /// At most an eighth of the stake.
    uint128 retrainReward;
    // ---- slot 12
    /// Where the bundle can be fetched.
    string bundle;
}
