// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Float32} from "../../src/libraries/Float32.sol";
import {Test} from "forge-std/Test.sol";

/// @title Edge cases of Float32, and laws that hold for all bit patterns. The bulk comparison is in
/// ../vectors/Numerics.t.sol.
contract Float32Test is Test {
    uint32 private constant NAN = 0x7fc00000;
    uint32 private constant INF = 0x7f800000;
    uint32 private constant NEG = 0x80000000;
    uint32 private constant ONE = 0x3f800000;
    uint32 private constant LEAST = 1; // 2^-149
    uint32 private constant GREATEST = 0x7f7fffff;

    // ------------------------------------------------------------------ arithmetic

    function test_add_zerosKeepIeeeSigns_succeeds() public pure {
        assertEq(Float32.add(0, NEG), 0);
        assertEq(Float32.add(NEG, NEG), NEG);
        assertEq(Float32.add(ONE, NEG | ONE), 0);
    }

    function test_add_tieGoesToEven_succeeds() public pure {
        assertEq(Float32.add(ONE, 0x33800000), ONE); // 1 + 2^-24
        assertEq(Float32.add(ONE, 0x33800001), ONE + 1);
        assertEq(Float32.add(ONE + 1, 0x33800000), ONE + 2);
    }

    function test_add_farOperandAndOverflow_succeeds() public pure {
        // A factor of 2^276 apart: more than an EVM word could hold exactly.
        assertEq(Float32.add(0x7f000000, NEG | LEAST), 0x7f000000);
        assertEq(Float32.add(GREATEST, GREATEST), INF);
        assertEq(Float32.add(GREATEST, 0x73000000), INF); // half a unit in the last place: the tie overflows
        assertEq(Float32.add(GREATEST, 0x72ffffff), GREATEST);
    }

    function test_add_infinitiesOfOppositeSign_succeeds() public pure {
        assertEq(Float32.add(INF, NEG | INF), NAN);
        assertEq(Float32.add(INF, INF), INF);
        assertEq(Float32.add(ONE, NEG | INF), NEG | INF);
    }

    function test_mul_underflowAndOverflow_succeeds() public pure {
        assertEq(Float32.mul(LEAST, 0x3f000000), 0); // 2^-150 ties to zero
        assertEq(Float32.mul(LEAST, NEG | 0x3f000000), NEG);
        assertEq(Float32.mul(LEAST, 0x3f000001), LEAST);
        assertEq(Float32.mul(GREATEST, NEG | 0x40000000), NEG | INF);
        assertEq(Float32.mul(INF, NEG), NAN);
    }

    function test_div_specialValues_succeeds() public pure {
        assertEq(Float32.div(0, NEG), NAN);
        assertEq(Float32.div(ONE, NEG), NEG | INF);
        assertEq(Float32.div(INF, INF), NAN);
        assertEq(Float32.div(ONE, NEG | INF), NEG);
        assertEq(Float32.div(ONE, 0x40400000), 0x3eaaaaab); // 1 / 3
        assertEq(Float32.div(LEAST, GREATEST), 0);
    }

    function test_sqrt_specialValues_succeeds() public pure {
        assertEq(Float32.sqrt(NEG), NEG);
        assertEq(Float32.sqrt(NEG | ONE), NAN);
        assertEq(Float32.sqrt(INF), INF);
        assertEq(Float32.sqrt(0x40000000), 0x3fb504f3); // sqrt 2
        assertEq(Float32.sqrt(LEAST), 0x1a3504f3); // sqrt 2^-149
    }

    function test_max_zeroIsPositive_succeeds() public pure {
        assertEq(Float32.max(NEG, NEG), 0);
        assertEq(Float32.min(NEG, 0), 0);
        assertEq(Float32.max(NAN, INF), NAN);
        assertEq(Float32.min(NEG | INF, 0xffffffff), NAN);
    }

    // ------------------------------------------------------------------ rounding, conversion

    function test_rint_tieGoesToEven_succeeds() public pure {
        assertEq(Float32.rint(0x3f000000), 0); // 0.5
        assertEq(Float32.rint(NEG | 0x3f000000), NEG);
        assertEq(Float32.rint(0x3fc00000), 0x40000000); // 1.5
        assertEq(Float32.rint(0x40200000), 0x40000000); // 2.5
        assertEq(Float32.rint(0x4affffff), 0x4b000000); // 2^23 - 0.5
    }

    function test_floor_negativesGoDown_succeeds() public pure {
        assertEq(Float32.floor(NEG | LEAST), NEG | ONE);
        assertEq(Float32.floor(NEG), NEG);
        assertEq(Float32.floor(0x3f7fffff), 0);
        assertEq(Float32.floor(NEG | 0x3fc00000), NEG | 0x40000000); // -1.5: carries into the exponent
    }

    function test_toI32_saturates_succeeds() public pure {
        assertEq(Float32.toI32(0x4f000000), type(int32).max); // 2^31
        assertEq(Float32.toI32(0x4effffff), 2147483520); // the largest f32 below
        assertEq(Float32.toI32(0xcf000000), type(int32).min);
        assertEq(Float32.toI32(NEG | INF), type(int32).min);
        assertEq(Float32.toI32(0xffc00001), 0);
        assertEq(Float32.toI64(INF), type(int64).max);
        assertEq(Float32.toI64(0xdf000000), type(int64).min); // -2^63
    }

    function test_fromInteger_roundsOnce_succeeds() public pure {
        // 2^54 + 2^30 + 1 is above a tie; through a float64 it would be rounded to the tie and then to even.
        assertEq(Float32.fromInteger((1 << 54) + (1 << 30) + 1), 0x5a800001);
        assertEq(Float32.fromInteger(0), 0);
        assertEq(Float32.fromInteger(type(int64).min), 0xdf000000);
        assertEq(Float32.fromInteger(type(int256).min), NEG | INF);
    }

    function test_roundScaled_underflowKeepsTheSign_succeeds() public pure {
        assertEq(Float32.roundScaled(-1, -1000), NEG);
        assertEq(Float32.roundScaled(0, type(int64).min), 0);
        assertEq(Float32.roundScaled(-1, type(int64).max), NEG | INF);
        assertEq(Float32.roundScaled(3, -151), LEAST); // 0.75 units: one
        assertEq(Float32.roundScaled(type(int256).min, -405), NEG); // half of the least: ties to even
        assertEq(Float32.roundScaled(type(int256).min, -404), NEG | LEAST);
    }

    // ------------------------------------------------------------------ laws

    function testFuzz_add_commutes_succeeds(uint32 x, uint32 y) public pure {
        assertEq(Float32.add(x, y), Float32.add(y, x));
        assertEq(Float32.mul(x, y), Float32.mul(y, x));
    }

    function testFuzz_sub_ofItselfIsPositiveZero_succeeds(uint32 x) public pure {
        bool finite = !Float32.isNaN(x) && !Float32.isInfinite(x);
        assertEq(Float32.sub(x, x), finite ? 0 : NAN);
    }

    function testFuzz_mul_byOneIsCanonical_succeeds(uint32 x) public pure {
        assertEq(Float32.mul(x, ONE), Float32.canonical(x));
        assertEq(Float32.div(x, ONE), Float32.canonical(x));
        assertEq(Float32.add(x, NEG), Float32.canonical(x));
    }

    function testFuzz_scale_byAPowerIsAProduct_succeeds(uint32 x, uint8 power) public pure {
        uint32 field = uint32(bound(power, 1, 254));
        assertEq(Float32.scale(x, int64(uint64(field)) - 127), Float32.mul(x, field << 23));
    }

    function testFuzz_round_isMonotone_succeeds(uint256 m, uint256 n, int16 e) public pure {
        (m, n) = m < n ? (m, n) : (n, m);
        assertLe(Float32.order(Float32.round(0, m, e)), Float32.order(Float32.round(0, n, e)));
    }

    function testFuzz_round_ofAFloatIsItself_succeeds(uint32 x) public pure {
        vm.assume(!Float32.isNaN(x) && !Float32.isInfinite(x));
        (uint256 m, int256 e) = Float32.decode(x);
        assertEq(Float32.round(x & NEG, m << 200, e - 200), x);
    }

    function testFuzz_sqrt_isNearest_succeeds(uint32 x) public pure {
        x = uint32(bound(x, 1, GREATEST));
        (uint256 m, int256 e) = Float32.decode(x);
        (uint256 r, int256 f) = Float32.decode(Float32.sqrt(x));
        // (r - 1/2)^2 < m * 2^(e - 2f) < (r + 1/2)^2, times 4: both sides are integers.
        uint256 radicand = (m << 2) << uint256(e - 2 * f);
        assertLt((2 * r - 1) ** 2, radicand);
        assertGt((2 * r + 1) ** 2, radicand);
    }

    function testFuzz_div_isNearest_succeeds(uint32 x, uint32 y) public pure {
        // Normal operands whose quotient is normal too.
        x = uint32(bound(x, 0x20000000, 0x5f000000));
        y = uint32(bound(y, 0x20000000, 0x5f000000));
        (uint256 mx, int256 ex) = Float32.decode(x);
        (uint256 my, int256 ey) = Float32.decode(y);
        (uint256 q, int256 eq) = Float32.decode(Float32.div(x, y));
        // |x - q y| <= y / 2 in units of the quotient's last place.
        int256 shift = ex - ey - eq;
        uint256 exact = 2 * mx << uint256(shift + 60);
        uint256 found = (2 * q * my) << 60;
        assertLe(exact > found ? exact - found : found - exact, my << 60);
    }

    function testFuzz_toInteger_ofAnIntegerIsItself_succeeds(int24 v) public pure {
        assertEq(Float32.toInteger(Float32.fromInteger(v)), v);
    }

    function testFuzz_floor_isAtMostRintPlusHalf_succeeds(uint32 x) public pure {
        vm.assume(!Float32.isNaN(x));
        assertTrue(Float32.le(Float32.floor(x), x));
        assertTrue(Float32.le(Float32.floor(x), Float32.rint(x)));
        assertEq(Float32.floor(Float32.rint(x)), Float32.rint(x));
    }

    function testFuzz_lt_isATotalOrderOnNumbers_succeeds(uint32 x, uint32 y) public pure {
        bool numbers = !Float32.isNaN(x) && !Float32.isNaN(y);
        uint256 holding = (Float32.lt(x, y) ? 1 : 0) + (Float32.eq(x, y) ? 1 : 0) + (Float32.lt(y, x) ? 1 : 0);
        assertEq(holding, numbers ? 1 : 0);
        assertEq(Float32.le(x, y), Float32.lt(x, y) || Float32.eq(x, y));
    }
}
