// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Costs of a task's seats and draws: audit.md section 8. protocol/tasks/task.py has the same numbers.
library Fees {
    /// @notice Maximum number of draws of a task's seats that its escrow pays for, including the first.
    uint8 internal constant ESCROW_DRAWS = 8;
    /// @notice Further draws that the escrow pays for if there are looks: enough for one draw of each level,
    /// which picks the level's looks.
    uint8 internal constant LOOK_DRAWS = 4;

    /// @notice Payment of an attested seat.
    function ofSeat(uint256 auditFee, uint256 segmentsPerVerifier) internal pure returns (uint256) {
        return auditFee * segmentsPerVerifier;
    }

    /// @notice Amount that a post locks: the budget, the fees of all seats, and the fees of the draws that
    /// the escrow may have to pay for. With looks, also their fees (there are at most as many looks as
    /// segments of seats) and draws.
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
