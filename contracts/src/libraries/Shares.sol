// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Where a slashed stake and an escrow go: dispute.md section 8. The same numbers as protocol/tasks/economics.py.
library Shares {
    /// @notice Splits a slashed stake. The four parts add up to it.
    /// @param stake What remains in the lock.
    /// @param reward What the challenger is due.
    /// @param restitution What the terms promise the submitter.
    /// @return burned A quarter of the stake, rounded up, before anything else: conceding to oneself costs this much.
    /// @return rewarded The reward, as far as what is left goes.
    /// @return restored The restitution, as far as what is then left goes.
    /// @return rest What is left, burned too.
    function slash(uint256 stake, uint256 reward, uint256 restitution)
        internal
        pure
        returns (uint256 burned, uint256 rewarded, uint256 restored, uint256 rest)
    {
        // unchecked: every subtrahend is at most what it is taken from.
        unchecked {
            burned = stake / 4 + (stake % 4 == 0 ? 0 : 1);
            rest = stake - burned;
            rewarded = reward < rest ? reward : rest;
            rest -= rewarded;
            restored = restitution < rest ? restitution : rest;
            rest -= restored;
        }
    }

    /// @notice Splits what a settled task owes between its verifiers and its solver.
    /// @dev A missed draw raises the number of duties beyond what the escrow reserved fees for. The solver, who may
    /// draw for itself, pays the excess out of its price; if that is too little, every attestation earns less.
    /// @param price The solver's bid.
    /// @param reserve Fees held in the escrow.
    /// @param fee Fee of one attestation in the terms.
    /// @param attestations How many there are.
    /// @return each Fee of one attestation, rounded down.
    /// @return toSolver What the solver gets; with all fees it is at most reserve + price.
    function settle(uint256 price, uint256 reserve, uint256 fee, uint256 attestations)
        internal
        pure
        returns (uint256 each, uint256 toSolver)
    {
        if (attestations == 0) return (0, price);
        uint256 most = (reserve + price) / attestations;
        each = fee < most ? fee : most;
        uint256 fees = each * attestations;
        toSolver = fees > reserve ? price - (fees - reserve) : price;
    }
}
