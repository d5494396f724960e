// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title What a task's seats and draws cost: audit.md section 8. The same numbers as protocol/tasks/economics.py.
library Fees {
    /// @notice Most draws of a task that its escrow pays, the first one included.
    uint8 internal constant ESCROW_DRAWS = 8;
    /// @notice As many more may its looks need: the first draw of each level.
    uint8 internal constant LOOK_DRAWS = 4;

    /// @notice What an attested seat is paid.
    function ofSeat(uint256 auditFee, uint256 segmentsPerVerifier) internal pure returns (uint256) {
        return auditFee * segmentsPerVerifier;
    }

    /// @notice What a post locks: the budget, the fees of all seats, and of the draws that the escrow may have to pay; with looks as
    /// much again for these, of which there are at most as many as segments of seats.
    function escrow(
        uint256 budget,
        uint256 verifiers,
        uint256 segmentsPerVerifier,
        uint256 auditFee,
        uint256 lookChance,
        uint256 drawFee
    ) internal pure returns (uint256) {
        uint256 audit = verifiers * ofSeat(auditFee, segmentsPerVerifier);
        if (lookChance == 0) return budget + audit + ESCROW_DRAWS * drawFee;
        return budget + 2 * audit + (ESCROW_DRAWS + LOOK_DRAWS) * drawFee;
    }
}
