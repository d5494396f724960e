// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice Hints for mapping a field element u to the curve (SvdW.sol): with them, the contract computes no
/// inverse and no square root. All are below the field's modulus and unique for u; the roots have the parity
/// of u.
struct MapHints {
    /// @dev The inverse of 1 - 16 u^4; 0 if that is 0.
    uint256 inverse;
    /// @dev The square root of g(x1), or else of -g(x1): exactly one of them has a square root.
    uint256 root;
    /// @dev 0 if g(x1) is a square; otherwise the square root of g(x2) or g(x3), exactly one of which then
    /// has a square root.
    uint256 other;
}
