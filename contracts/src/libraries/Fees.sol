// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAuditBoard} from "../interfaces/IAuditBoard.sol";

/// @title Audit fees of a task: what the escrow holds for them, and how many are earned (dispute.md sections 2, 3 and 8).
library Fees {
    /// @notice Audit fees in the escrow: q segments and segment K for each of V verifiers.
    function reserve(uint256 auditFee, uint256 verifiers, uint256 segmentsPerVerifier)
        internal
        pure
        returns (uint256)
    {
        return auditFee * verifiers * (segmentsPerVerifier + 1);
    }

    /// @notice Duties that were attested, each of which earns one fee.
    function attested(IAuditBoard.Duty[] memory duties) internal pure returns (uint256 count) {
        for (uint256 i; i < duties.length; ++i) {
            if (duties[i].attested) ++count;
        }
    }
}
