// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Fixed} from "../../src/libraries/Fixed.sol";
import {Float32} from "../../src/libraries/Float32.sol";
import {Test} from "forge-std/Test.sol";

/// @title Edge cases of Fixed; block reductions compared with plain loops. The bulk comparison is in
/// ../vectors/Numerics.t.sol.
contract FixedTest is Test {
    uint32 private constant ONE = 0x3f800000;
    uint32 private constant INF = 0x7f800000;
    uint32 private constant NEG = 0x80000000;

    // ------------------------------------------------------------------ rows and exponents

    function test_exponentOf_smallestAboveTheMaximum_succeeds() public pure {
        assertEq(Fixed.exponentOf(ONE), 1);
        assertEq(Fixed.exponentOf(ONE - 1), 0);
        assertEq(Fixed.exponentOf(0), -95);
        assertEq(Fixed.exponentOf(0x007fffff), -95);
        assertEq(Fixed.exponentOf(0x0f800000), -95); // 2^-96
        assertEq(Fixed.exponentOf(0x10000000), -94); // 2^-95
        assertEq(Fixed.exponentOf(INF), 32767);
        assertEq(Fixed.exponentOf(0xffc00001), 32767);
    }

    function test_exponentBlock_signsAndShortBlocks_succeeds() public view {
        assertEq(this.exponentBlock(_f32(NEG | 0x40400000, ONE, 0)), 2);
        assertEq(this.exponentBlock(_f32(ONE, INF, 0)), 32767);
    }

    function test_exponentBlock_brokenElement_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Fixed.BlockNotWhole.selector, 3, 4));
        this.exponentBlock(hex"000000");
    }

    function test_quantise_edges_succeeds() public pure {
        assertEq(Fixed.quantise(ONE, 1, 13), 4096);
        assertEq(Fixed.quantise(ONE - 1, 0, 13), 8192); // rounds up to 2^p
        assertEq(Fixed.quantise(NEG | ONE, Fixed.SENTINEL, 13), 0);
        assertEq(Fixed.quantise(INF, Fixed.SENTINEL, 30), 0);
    }

    function test_quantise_hostileExponentSaturates_succeeds() public pure {
        assertEq(Fixed.quantise(ONE, type(int32).min, 30), type(int32).max);
        assertEq(Fixed.quantise(NEG | ONE, type(int32).min, 30), type(int32).min);
        assertEq(Fixed.quantise(ONE, type(int32).max, 30), 0);
        assertEq(Fixed.quantise(0x7fc00000, 0, 30), 0);
        assertEq(Fixed.toFixed(NEG | INF, 0, 30), type(int64).min);
        assertEq(Fixed.toFixed(ONE, -33, 30), type(int64).max); // 2^63
        assertEq(Fixed.toFixed(ONE, -32, 30), int64(1) << 62);
    }

    function test_roundScaled_sentinelGivesNaN_succeeds() public pure {
        assertEq(Fixed.roundScaled(1, Fixed.SENTINEL, 0, 26), Float32.NAN);
        assertEq(Fixed.roundScaled(0, 0, Fixed.SENTINEL, 26), Float32.NAN);
        assertEq(Fixed.roundScaled(0, 5, 5, 26), 0);
        assertEq(Fixed.roundScaled(-1, type(int32).min, type(int32).min, 40), NEG);
        assertEq(Fixed.roundScaled(-1, type(int32).max, type(int32).max, 40), NEG | INF);
    }

    function testFuzz_quantise_ofItsOwnExponentIsBounded_succeeds(uint32 x, uint32 y, uint8 choice)
        public
        pure
    {
        int32 p = [int32(13), 20, 30][choice % 3];
        uint32 largest = x & 0x7fffffff > y & 0x7fffffff ? x : y;
        int32 e = Fixed.exponentOf(largest);
        int256 m = Fixed.quantise(x, e, p);
        assertLe(m < 0 ? -m : m, int256(1) << uint32(p));
        assertEq(Fixed.toFixed(x, e, p), m);
    }

    // ------------------------------------------------------------------ blocks

    function testFuzz_dotBlock_equalsAPlainLoop_succeeds(int32[] calldata x, uint256 seed) public view {
        int32[] memory y = new int32[](x.length);
        bytes memory left;
        bytes memory right;
        int256 total;
        for (uint256 k; k < x.length; ++k) {
            y[k] = int32(uint32(uint256(keccak256(abi.encode(seed, k)))));
            left = bytes.concat(left, _le(uint32(x[k]), 4));
            right = bytes.concat(right, _le(uint32(y[k]), 4));
            total += int256(x[k]) * y[k];
        }
        assertEq(this.dotBlock(left, right), int64(uint64(uint256(total))));
    }

    function test_dotBlock_extremesWrap_succeeds() public view {
        bytes memory lowest;
        for (uint256 k; k < 256; ++k) {
            lowest = bytes.concat(lowest, hex"00000080");
        }
        assertEq(this.dotBlock(lowest, lowest), 0); // 2^8 * 2^62 = 2^70
    }

    function test_dotBlock_lengthsDiffer_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Fixed.BlockLengthsDiffer.selector, 4, 8));
        this.dotBlock(hex"00000000", hex"0000000000000000");
    }

    function testFuzz_sumBlock_equalsAPlainLoop_succeeds(int64[] calldata x) public view {
        bytes memory data;
        int256 total;
        for (uint256 k; k < x.length; ++k) {
            data = bytes.concat(data, _le(uint64(x[k]), 8));
            total += x[k];
        }
        assertEq(this.sumBlock(data), int64(uint64(uint256(total))));
    }

    function testFuzz_scatterBlock_equalsAPlainLoop_succeeds(uint256[] calldata seeds, uint32 place)
        public
        view
    {
        bytes memory indices;
        bytes memory data;
        uint64 total;
        for (uint256 k; k < seeds.length; ++k) {
            // About half of the indices equal the place; the others differ from it in one bit.
            uint32 index = seeds[k] % 2 == 0 ? place : place ^ uint32(1 << (seeds[k] >> 8) % 32);
            uint64 value = uint64(seeds[k] >> 64);
            indices = bytes.concat(indices, _le(index, 4));
            data = bytes.concat(data, _le(value, 8));
            unchecked {
                if (index == place) total += value;
            }
        }
        assertEq(this.scatterBlock(indices, data, place), int64(total));
    }

    function test_scatterBlock_indexForEveryElement_reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Fixed.BlockLengthsDiffer.selector, 4, 4));
        this.scatterBlock(hex"00000000", hex"00000000", 0);
    }

    function testFuzz_maxBlock_equalsAFold_succeeds(uint32[] calldata x, uint32 first) public view {
        bytes memory data = _le(first, 4);
        uint32 largest = Float32.max(first, first);
        for (uint256 k; k < x.length; ++k) {
            data = bytes.concat(data, _le(x[k], 4));
            largest = Float32.max(largest, x[k]);
        }
        assertEq(this.maxBlock(data), largest);
    }

    function test_argmaxBlock_tiesNaNsAndZeros_succeeds() public view {
        _expectArgmax(_f32(ONE, 0x40000000, 0x40000000), 0x40000000, 1);
        _expectArgmax(_f32(INF, 0xffc00001, 0x7fc00000), 0x7fc00000, 1);
        _expectArgmax(_f32(NEG, 0, NEG), NEG, 0);
        _expectArgmax(_f32(NEG | INF, NEG | ONE, NEG | ONE), NEG | ONE, 1);
    }

    function testFuzz_argmaxBlock_equalsALoop_succeeds(uint8[] calldata choices, uint32 other) public view {
        uint32[8] memory values = [0, NEG, ONE, NEG | ONE, INF, NEG | INF, other, other ^ NEG];
        bytes memory data = _le(NEG | INF, 4);
        uint32 best = NEG | INF;
        uint256 place;
        for (uint256 k; k < choices.length; ++k) {
            uint32 value = Float32.canonical(values[choices[k] % 8]);
            data = bytes.concat(data, _le(value, 4));
            if (Fixed.displaces(value, best)) (best, place) = (value, k + 1);
        }
        _expectArgmax(data, best, place);
    }

    function test_argmaxBlock_bytesBehindTheBlockAreNotRead_succeeds() public view {
        // All elements negative: the zeros that pad the last word must not win.
        _expectArgmax(_f32(NEG | 0x40000000, NEG | ONE, NEG | 0x40000000), NEG | ONE, 1);
        assertEq(this.maxBlock(_f32(NEG | INF, NEG | INF, NEG | INF)), NEG | INF);
    }

    function test_argmaxBlock_empty_reverts() public {
        vm.expectRevert(Fixed.BlockEmpty.selector);
        this.argmaxBlock("");
    }

    function test_displaces_onlyLargerOrFirstNaN_succeeds() public pure {
        assertTrue(Fixed.displaces(0x40000000, ONE));
        assertFalse(Fixed.displaces(ONE, ONE));
        assertFalse(Fixed.displaces(0, NEG));
        assertTrue(Fixed.displaces(0x7fc00000, INF));
        assertFalse(Fixed.displaces(0x7fc00000, 0x7fc00000));
        assertFalse(Fixed.displaces(INF, 0x7fc00000));
    }

    // ------------------------------------------------------------------ external functions, for calldata

    function exponentBlock(bytes calldata x) external pure returns (int32) {
        return Fixed.exponentBlock(x);
    }

    function dotBlock(bytes calldata x, bytes calldata y) external pure returns (int64) {
        return Fixed.dotBlock(x, y);
    }

    function sumBlock(bytes calldata x) external pure returns (int64) {
        return Fixed.sumBlock(x);
    }

    function scatterBlock(bytes calldata indices, bytes calldata x, uint32 place)
        external
        pure
        returns (int64)
    {
        return Fixed.scatterBlock(indices, x, place);
    }

    function maxBlock(bytes calldata x) external pure returns (uint32) {
        return Fixed.maxBlock(x);
    }

    function argmaxBlock(bytes calldata x) external pure returns (uint32, uint256) {
        return Fixed.argmaxBlock(x);
    }

    function _expectArgmax(bytes memory data, uint32 value, uint256 index) private view {
        (uint32 gotValue, uint256 gotIndex) = this.argmaxBlock(data);
        assertEq(gotValue, value);
        assertEq(gotIndex, index);
    }

    function _f32(uint32 a, uint32 b, uint32 c) private pure returns (bytes memory) {
        return bytes.concat(_le(a, 4), _le(b, 4), _le(c, 4));
    }

    function _le(uint64 v, uint256 size) private pure returns (bytes memory out) {
        out = new bytes(size);
        for (uint256 k; k < size; ++k) {
            out[k] = bytes1(uint8(v >> (8 * k)));
        }
    }
}
