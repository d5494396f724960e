// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Bn254} from "../../src/libraries/Bn254.sol";
import {Refusals} from "../../src/libraries/Refusals.sol";
import {MapHints} from "../../src/types/Hints.sol";
import {Signing} from "./Signing.sol";

/// @title Hints for the mapping: correct hints lead to RFC 9380's point, all others revert.
contract HintsTest is Signing {
    uint256 private constant INVERSE = 0;
    uint256 private constant ROOT = 1;
    uint256 private constant OTHER = 2;

    function testFuzz_map_anyElement_asPackage_succeeds(uint256 u) public view {
        _assertAsPackage(u % P);
    }

    /// @dev 1 - 16 u^4 is 0 for these two only, because -1 is not a square.
    function test_map_inverseOfZero_asPackage_succeeds() public view {
        assertEq(_mapHints(HALF).inverse, 0);
        assertEq(_mapHints(P - HALF).inverse, 0);
        _assertAsPackage(HALF);
        _assertAsPackage(P - HALF);
        assertFalse(_isSquare(P - 1));
    }

    function test_map_edges_asPackage_succeeds() public view {
        for (uint256 i; i < 8; ++i) {
            _assertAsPackage(i);
            _assertAsPackage(P - 1 - i);
        }
    }

    function test_map_inverseOfZero_otherInverse_reverts() public {
        uint256[5] memory inverses = [uint256(1), 2, P - 1, P, type(uint256).max];
        MapHints memory hints = _mapHints(HALF);
        for (uint256 i; i < inverses.length; ++i) {
            hints.inverse = inverses[i];
            _expectWrong(HALF, INVERSE, hints.inverse);
            curve.map(HALF, hints);
        }
    }

    function testFuzz_map_inverseChanged_reverts(uint256 u, uint256 inverse) public {
        u %= P;
        MapHints memory hints = _mapHints(u);
        vm.assume(inverse != hints.inverse);
        hints.inverse = inverse;
        _expectWrong(u, INVERSE, inverse);
        curve.map(u, hints);
    }

    function testFuzz_map_rootChanged_reverts(uint256 u, uint256 root) public {
        u %= P;
        MapHints memory hints = _mapHints(u);
        vm.assume(root != hints.root);
        hints.root = root;
        _expectWrong(u, ROOT, root);
        curve.map(u, hints);
    }

    function testFuzz_map_otherChanged_reverts(uint256 u, uint256 other) public {
        u %= P;
        MapHints memory hints = _mapHints(u);
        vm.assume(other != hints.other);
        hints.other = other;
        _expectWrong(u, OTHER, other);
        curve.map(u, hints);
    }

    /// @dev Numbers congruent to a right hint or to the negative of a root, with the right parity and with
    /// the wrong one.
    function testFuzz_map_congruentHints_reverts(uint256 u, uint8 times) public {
        u %= P;
        uint256 more = bound(times, 1, type(uint256).max / P - 1) * P;
        MapHints memory right = _mapHints(u);
        _expectRefused(u, INVERSE, MapHints(right.inverse + more, right.root, right.other));
        _expectRefused(u, ROOT, MapHints(right.inverse, right.root + more, right.other));
        _expectRefused(u, OTHER, MapHints(right.inverse, right.root, right.other + more));
        _expectRefused(u, ROOT, MapHints(right.inverse, P - right.root, right.other));
        _expectRefused(u, ROOT, MapHints(right.inverse, P - right.root + more, right.other));
        _expectRefused(u, OTHER, MapHints(right.inverse, right.root, P - right.other));
        _expectRefused(u, OTHER, MapHints(right.inverse, right.root, P - right.other + more));
    }

    /// @dev Roots of g or -g of each of the three x, used where they might select another of the three x.
    function testFuzz_map_rootsOfOthers_reverts(uint256 u) public {
        u %= P;
        (uint256 x1, uint256 x2, uint256 x3) = _candidates(u);
        MapHints memory right = _mapHints(u);
        uint256[3] memory xs = [x1, x2, x3];
        uint256[8] memory roots;
        for (uint256 i; i < 3; ++i) {
            uint256 g = Bn254.g(xs[i]);
            roots[i] = _root(_isSquare(g) ? g : P - g, u);
            roots[i + 3] = P - roots[i];
        }
        roots[6] = 0;
        roots[7] = right.inverse;
        for (uint256 i; i < 8; ++i) {
            for (uint256 j; j < 8; ++j) {
                if (roots[i] == right.root && roots[j] == right.other) continue;
                _expectRefused(
                    u, roots[i] == right.root ? OTHER : ROOT, MapHints(right.inverse, roots[i], roots[j])
                );
            }
        }
    }

    /// @dev Hints of other elements, and of u's negative.
    function testFuzz_map_hintsOfOtherElement_reverts(uint256 u, uint256 v) public {
        u %= P;
        v %= P;
        vm.assume(u != v && u != P - v && u != 0);
        _expectRefused(u, INVERSE, _mapHints(v));
        _expectRefused(u, ROOT, _mapHints(P - u));
    }

    function testFuzz_hash_hintsInOtherOrder_reverts(bytes32 message) public {
        uint256[2] memory u = curve.toField(message);
        MapHints[2] memory hints = _hintsOf(message);
        (hints[0], hints[1]) = (hints[1], hints[0]);
        _expectWrong(u[0], INVERSE, hints[0].inverse);
        curve.hash(message, hints);
    }

    /// @dev g(x) = 0 has no solution: -3 is not a cube. So no x has roots of both g(x) and -g(x).
    function test_g_hasNoRoot_succeeds() public view {
        (bool done, bytes memory result) =
            address(5).staticcall(abi.encode(32, 32, 32, P - 3, (P - 1) / 3, P));
        assertTrue(done);
        assertNotEq(abi.decode(result, (uint256)), 1);
    }

    /// @dev The identity that decides between x2 and x3: g(x1) g(x2) (x3 - 1) = (x1^2 + x1 + 1)^2 g(x3). As
    /// functions of u, the left side is a quotient of polynomials of degree at most 16 and the right side one
    /// of degree at most 20, so equality for 37 elements proves it for all.
    function test_candidates_identity_succeeds() public view {
        for (uint256 u = 1; u <= 256; ++u) {
            (uint256 x1, uint256 x2, uint256 x3) = _candidates(u);
            assertTrue(_isSquare(x3 - 1));
            uint256 left = mulmod(mulmod(Bn254.g(x1), Bn254.g(x2), P), x3 - 1, P);
            uint256 sum = addmod(mulmod(x1, x1, P), x1 + 1, P);
            assertEq(left, mulmod(mulmod(sum, sum, P), Bn254.g(x3), P));
        }
    }

    function _assertAsPackage(uint256 u) private view {
        (uint256 x, uint256 y) = curve.map(u, _mapHints(u));
        (uint256[2] memory due,) = package.test__mapToPoint(u);
        assertEq(x, due[0]);
        assertEq(y, due[1]);
    }

    function _expectRefused(uint256 u, uint256 hint, MapHints memory hints) private {
        uint256[3] memory given = [hints.inverse, hints.root, hints.other];
        _expectWrong(u, hint, given[hint]);
        curve.map(u, hints);
    }

    function _expectWrong(uint256 u, uint256 hint, uint256 given) private {
        vm.expectRevert(abi.encodeWithSelector(Refusals.WrongHint.selector, u, hint, given));
    }
}
