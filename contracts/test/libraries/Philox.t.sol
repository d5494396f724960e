// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Philox} from "../../src/libraries/Philox.sol";
import {Test} from "forge-std/Test.sol";

/// @title The known answers published by Random123 1.14 for philox4x32-10 (tests/kat_vectors).
contract PhiloxTest is Test {
    function test_generate_knownAnswerZeros_succeeds() public pure {
        _expect([uint32(0), 0, 0, 0], 0, 0, [uint32(0x6627e8d5), 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    }

    function test_generate_knownAnswerOnes_succeeds() public pure {
        uint32 m = type(uint32).max;
        _expect([m, m, m, m], m, m, [uint32(0x408f276d), 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
    }

    function test_generate_knownAnswerPi_succeeds() public pure {
        _expect(
            [uint32(0x243f6a88), 0x85a308d3, 0x13198a2e, 0x03707344],
            0xa4093822,
            0x299f31d0,
            [uint32(0xd16cfe09), 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }

    function testFuzz_element_isItsWordOfItsBlock_succeeds(
        uint64 i,
        uint32 k0,
        uint32 k1,
        uint32 step,
        uint32 stream
    ) public pure {
        uint32[4] memory words = Philox.generate([uint32(i >> 2), uint32(i >> 34), step, stream], k0, k1);
        assertEq(Philox.element(i, k0, k1, step, stream), words[i & 3]);
    }

    function _expect(uint32[4] memory counter, uint32 key0, uint32 key1, uint32[4] memory words)
        private
        pure
    {
        assertEq(abi.encode(Philox.generate(counter, key0, key1)), abi.encode(words));
    }
}
