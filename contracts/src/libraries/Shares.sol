// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Where a slashed stake goes: dispute.md section 8. The same numbers as protocol/tasks/economics.py.
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
}
