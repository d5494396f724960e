// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {SegmentIndex, TaskId} from "../types/Ids.sol";

/// @title Registered verifiers, draws and attestations.
interface IAuditBoard {
    /// @notice One drawn duty: this verifier is to replay this segment.
    struct Duty {
        address verifier;
        SegmentIndex segment;
        bool attested;
    }

    /// @notice The verifier has that many slots from now on.
    event Registered(address indexed verifier, uint32 slots);
    /// @notice The verifier has no slots any more; its stake is free after `until`.
    event Resigned(address indexed verifier, uint64 until);
    /// @notice The task's verifiers and segments were drawn; `drawer` proved the header that gives `seed`.
    event Drawn(TaskId indexed task, bytes32 seed, address indexed drawer);
    /// @notice Duty number `duty` of the task: this verifier is to replay this segment.
    event DutyDrawn(
        TaskId indexed task, uint256 indexed duty, address indexed verifier, SegmentIndex segment
    );
    /// @notice The verifier replayed the duty's segment and found it as committed. `stepsRoot` is the root of its own step
    /// tree.
    event Attested(TaskId indexed task, uint256 indexed duty, address indexed verifier, bytes32 stepsRoot);
    /// @notice The hash of `drawBlock` is out of reach. The next draw gives each verifier `segmentsPerVerifier` segments.
    event DrawMissed(TaskId indexed task, uint64 drawBlock, uint16 segmentsPerVerifier);

    /// @notice Locks `count` stake units of the caller and gives it that many slots, 255 at most. One registration per account
    /// at a time; more stake takes more accounts.
    function register(uint32 count) external;

    /// @notice Takes the caller's slots out of draws whose block is more than 32 blocks ahead, or more than `drawDelay` where that
    /// is less; the stake unbonds. Duties of other draws stay, even if `draw` is called later.
    function resign() external;

    /// @notice Slots whose verifiers have not resigned.
    function liveSlots() external view returns (uint32);

    /// @notice Accounts with live slots: as many attestations as a segment can have.
    function liveVerifiers() external view returns (uint32);

    /// @notice TaskMarket only: the slots that are live now are those that the task's draws choose from.
    function snapshot(TaskId task) external;

    /// @notice Anyone: proves the draw block's header, draws verifiers and segments (encoding.md section 7).
    /// @param header RLP of the block's header; its hash must be the chain's hash of the task's draw block.
    function draw(TaskId task, bytes calldata header) external;

    /// @notice Anyone: the draw block's hash is out of reach. Fixes a new block and raises q by half (rounded up; V q stays
    /// within 64). Possible `Parameters.maxMisses` times, then the task can only be voided,
    /// and the stake burns.
    function missed(TaskId task) external;

    /// @notice The duty's verifier: "I replayed this segment and it is as committed".
    /// @param stepsRoot Root of the verifier's own step tree.
    function attest(TaskId task, uint256 duty, bytes32 stepsRoot) external;

    /// @notice The duties that were drawn, those of one draw side by side; none before the draw.
    function dutiesOf(TaskId task) external view returns (Duty[] memory);

    /// @notice Time of the draw, 0 before it.
    function drawnAt(TaskId task) external view returns (uint64);

    /// @notice Whether each drawn segment has the matches that the terms ask for: segment K, which every drawn verifier
    /// replays, A attestations; another one A, or all if fewer verifiers have drawn it. False before the draw, and for good
    /// when a draw found no live slot.
    function satisfied(TaskId task) external view returns (bool);

    /// @notice Whether the task was not drawn and never will be: all misses are used up and the last block is out of reach.
    function drawLost(TaskId task) external view returns (bool);

    /// @notice Draws of the task that were missed.
    function missesOf(TaskId task) external view returns (uint8);
}
