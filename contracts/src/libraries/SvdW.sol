// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MapHints} from "../types/Hints.sol";
import {Bn254} from "./Bn254.sol";
import {Refusals} from "./Refusals.sol";

/// @title Maps field elements to BN254's G1 by the method of Shallue and van de Woestijne (RFC 9380, section
/// 6.6.1, with Z = 1).
/// @notice The caller finds inverses and roots; this library checks them. Each u has one point and one set of
/// hints that lead to it; every other set reverts. The reasons, with g(x) = x^3 + 3 and P = 3 mod 4:
///
/// - g has no root, because the curve's order is odd. As -1 is not a square, exactly one of g(x) and -g(x) is
///   a square, for every x.
/// - RFC 9380 takes the first of x1, x2, x3 for which g is a square. g(x1) g(x2) g(x3) is a square, because
///   g(x1) g(x2) = ((x1^2 + x1 + 1) / v)^2 g(x3) with v^2 = x3 - 1. So a root of -g(x1) shows that x1 is not
///   taken, and that exactly one of g(x2) and g(x3) is a square; its root then shows which of the two x is.
/// - For 1 - 16 u^4 = 0, which only u = 1/2 and u = -1/2 solve, RFC 9380 takes 0 for the inverse. Then x1 =
///   x2 = -1/2, and x1 is taken, because g(-1/2) = 23/8 is a square.
/// - A square has two roots r and P - r, one even and one odd. y has the parity of u; every root must have it
///   too.
/// - A number of P or more could have the parity of u when the root below P does not; it would lead to -y.
library SvdW {
    uint256 private constant P = Bn254.P;
    /// @dev c2 = -Z / 2, which for Z = 1 is (P - 1) / 2.
    uint256 private constant C2 = (P - 1) / 2;
    /// @dev c3 = sqrt(-g(Z) 3 Z^2) = sqrt(-12), the even root.
    uint256 private constant C3 = 0x16789af3a83522eb353c98fc6b36d713d5d8d1cc5dffffffa;
    /// @dev c4 = -4 g(Z) / (3 Z^2) = -16 / 3.
    uint256 private constant C4 = 0x10216f7ba065e00de81ac1e7808072c9dd2b2385cd7b438469602eb24829a9bd;

    /// @notice The point of u < P. Reverts with `WrongHint` unless the hints are those of u.
    function map(uint256 u, MapHints calldata hints) internal pure returns (uint256 x, uint256 y) {
        // No overflow: all operands are at most P + 1 < 2^254.
        unchecked {
            uint256 square = mulmod(4, mulmod(u, u, P), P);
            uint256 above = 1 + square;
            uint256 below = P + 1 - square;
            uint256 inverse = _inverse(u, mulmod(above, below, P), hints.inverse);
            uint256 slope = mulmod(mulmod(mulmod(u, below, P), inverse, P), C3, P);

            y = hints.root;
            uint256 root2 = _squared(u, y, 1);
            x = addmod(C2, P - slope, P);
            uint256 g = Bn254.g(x);
            if (root2 == g) {
                if (hints.other != 0) revert Refusals.WrongHint(u, 2, hints.other);
                return (x, y);
            }
            if (root2 + g != P) revert Refusals.WrongHint(u, 1, y);

            y = hints.other;
            root2 = _squared(u, y, 2);
            x = addmod(C2, slope, P);
            if (root2 == Bn254.g(x)) return (x, y);
            uint256 ratio = mulmod(mulmod(above, above, P), inverse, P);
            x = addmod(1, mulmod(C4, mulmod(ratio, ratio, P), P), P);
            if (root2 != Bn254.g(x)) revert Refusals.WrongHint(u, 2, y);
        }
    }

    /// @dev The inverse; reverts unless it is that of `product`, which is below P.
    function _inverse(uint256 u, uint256 product, uint256 inverse) private pure returns (uint256) {
        if (inverse >= P || (product == 0 ? inverse != 0 : mulmod(product, inverse, P) != 1)) {
            revert Refusals.WrongHint(u, 0, inverse);
        }
        return inverse;
    }

    /// @dev The square of hint number `hint`; reverts unless the hint is below P and has the parity of u.
    function _squared(uint256 u, uint256 root, uint256 hint) private pure returns (uint256) {
        if (root >= P || (root ^ u) & 1 != 0) revert Refusals.WrongHint(u, hint, root);
        return mulmod(root, root, P);
    }
}
