// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../interfaces/IDisputeGame.sol";

/// @title What the game refuses, and why: what was due and what came.
library DisputeErrors {
    // ------------------------------------------------------------------ who and when

    /// @notice Games are numbered 1 ... games().
    error NoSuchGame(uint256 game);
    /// @notice The game has ended.
    error GameIsClosed(uint256 game, IDisputeGame.Verdict verdict);
    /// @notice The task's solver was convicted in another game: `closeMoot` returns the bond.
    error TaskConvicted(uint256 task);
    /// @notice The task's solver was not convicted: the game goes on.
    error NotMoot(uint256 game);
    /// @notice The game is in phase `given`; this move belongs to phase `due`.
    error WrongPhase(IDisputeGame.Phase due, IDisputeGame.Phase given);
    /// @notice Only `due` may make this move.
    error NotAllowed(address due, address caller);
    /// @notice The other side is to move: the solver if `solver`, else the challenger.
    error NotYourTurn(bool solver);
    /// @notice The time for this ended at `deadline`.
    error TooLate(uint64 deadline, uint256 time);
    /// @notice The side to move has time until `deadline`, included.
    error TooEarly(uint64 deadline, uint256 time);
    /// @notice The move was made for another state of the game: read it again.
    error WrongHead(bytes32 due, bytes32 given);

    // ------------------------------------------------------------------ opening a game

    /// @notice The caller has made this commitment before.
    error AlreadyCommitted(bytes32 commitment);
    /// @notice The caller has not made this commitment, or used it up.
    error NotCommitted(bytes32 commitment);
    /// @notice A commitment is opened in a later block than the one that holds it.
    error SameBlock(uint256 number);
    /// @notice Segments and steps are numbered from 1 to `last`.
    error NumberOutside(uint32 given, uint32 last);

    // ------------------------------------------------------------------ claims

    /// @notice No game has asked for this claim, or it is of the other kind.
    error NotRequested(bytes32 claim);
    /// @notice The claim was posted before; claims are final.
    error AlreadyPosted(bytes32 claim);
    /// @notice What was opened is not what the claim is about.
    error WrongContext(bytes32 due, bytes32 given);
    /// @notice Calls nest at most `limit` deep.
    error TooDeep(uint8 limit);

    // ------------------------------------------------------------------ proofs

    /// @notice The proof leads to another root.
    error WrongRoot(bytes32 due, bytes32 computed);
    /// @notice The opening is of another program.
    error WrongProgram(bytes32 due, bytes32 given);
    /// @notice Leaf `index` has `due` bytes (0: there is no such leaf).
    error WrongLength(uint256 index, uint256 due, uint256 given);
    /// @notice A list of `given` entries came.
    error WrongCount(uint256 due, uint256 given);
    /// @notice The instruction has opcode `given`.
    error WrongOpcode(uint16 due, uint16 given);
    /// @notice The instruction has no such operand, result or attribute.
    error Malformed();
    /// @notice The value has `count` elements.
    error ElementOutside(uint64 element, uint256 count);
    /// @notice The element lies in chunk `due`.
    error WrongChunk(uint64 due, uint32 given);

    // ------------------------------------------------------------------ demands and splits

    /// @notice A demand names 1 to `limit` nodes, and a game has at most that many demands.
    error LimitReached(uint256 limit, uint256 given);
    /// @notice What came is not the demand or selection that the game keeps as a hash.
    error WrongPreimage(bytes32 due, bytes32 given);
    /// @notice The node was answered before, or was not demanded.
    error NotDemanded(uint8 index);
    /// @notice Only a top frame lies between two states.
    error NoStates();
    /// @notice A node is answered by its descendants, a leaf by its bytes.
    error WrongKind(uint32 size);
    /// @notice The stated words fold to another word than the one that was selected.
    error WrongFold(uint64 due, uint64 folded);
    /// @notice The row is one block: judge the element.
    error NothingToSplit();
    /// @notice The part is (or is not) one block: use `judgeBlock` (or `selectBlock`).
    error PartSize(uint8 part, uint32 blocks);

    // ------------------------------------------------------------------ verdicts that are none

    /// @notice The claimed element is right.
    error ElementAgrees(uint64 bits);
    /// @notice The stated word is right.
    error BlockAgrees(uint64 word);
    /// @notice Both sides of the edge are the same value.
    error EdgeAgrees(bytes32 value);
}
