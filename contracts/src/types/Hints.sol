// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice What turns mapping a field element u to the curve into multiplications (SvdW.sol). All are below the field's
/// modulus and unique for u; the roots have the parity of u.
struct MapHints {
    /// @dev The inverse of 1 - 16 u^4, and 0 of 0.
    uint256 inverse;
    /// @dev The square root of g(x1), else of -g(x1): exactly one of the two has one.
    uint256 root;
    /// @dev 0 if g(x1) is a square, otherwise the square root of g(x2) or of g(x3): then exactly one of the two has
    /// one.
    uint256 other;
}
