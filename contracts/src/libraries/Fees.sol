// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title What a task's seats and draws cost: dispute.md sections 2 and 8. The same numbers as protocol/tasks/economics.py.
library Fees {
    /// @notice Most draws of a task that its escrow pays, the first one included.
    uint8 internal constant ESCROW_DRAWS = 8;

    /// @notice What an attested seat is paid.
    function ofSeat(uint256 auditFee, uint256 segmentsPerVerifier) internal pure returns (uint256) {
        return auditFee * segmentsPerVerifier;
    }

    /// @notice What a post locks: the budget, the fees of all seats, and of the draws that the escrow may have to pay.
    function escrow(
        uint256 budget,
        uint256 verifiers,
        uint256 segmentsPerVerifier,
        uint256 auditFee,
        uint256 drawFee
    ) internal pure returns (uint256) {
        return budget + verifiers * ofSeat(auditFee, segmentsPerVerifier) + ESCROW_DRAWS * drawFee;
    }
}
