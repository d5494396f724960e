// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Cost of answering one demanded node, in gas and in bytes of the transaction: dispute.md section 6.
/// @notice Upper bounds on the gas of whole transactions under the rules of Prague. They hold for the answer
/// that gives the solver its first credit, which costs 17,100 more than any other, and for hashes and data
/// without zero bytes.
/// contracts/test/dispute/AnswerGas.t.sol measures them.
library Answers {
    /// @notice Gas of an inner node, including its 16 descendants.
    uint256 internal constant INNER_GAS = 108_000;
    /// @notice Gas of a leaf without its bytes.
    uint256 internal constant LEAF_GAS = 72_000;
    /// @notice Gas of one byte of a leaf.
    uint256 internal constant BYTE_GAS = 25;
    /// @notice Gas for each node of the demand, because every answer names all of them.
    uint256 internal constant NAMED_GAS = 1_050;

    /// @notice A signed transaction without its data: its fields (110 to 120 bytes) and the two lengths of
    /// RLP.
    uint256 private constant ENVELOPE = 128;
    /// @notice Selector, game, index, bytesTotal, two offsets, two lengths.
    uint256 private constant HEAD = 4 + 7 * 32;
    /// @notice Bytes of a named node: lo, size, hash.
    uint256 private constant NAMED = 3 * 32;
    /// @notice 16 hashes, four levels down.
    uint256 private constant DESCENDANTS = 16 * 32;

    /// @notice Gas of one answer to a demand of `count` nodes. The answered node is a leaf of `leafBytes`
    /// bytes, or an inner node if `leafBytes` is 0.
    function gasOf(uint256 count, uint256 leafBytes) internal pure returns (uint256) {
        uint256 alone = leafBytes == 0 ? INNER_GAS : LEAF_GAS + BYTE_GAS * leafBytes;
        return alone + NAMED_GAS * count;
    }

    /// @notice Bytes of the transaction that carries the answer.
    function bytesOf(uint256 count, uint256 leafBytes) internal pure returns (uint256) {
        uint256 data = leafBytes == 0 ? DESCENDANTS : (leafBytes + 31) / 32 * 32;
        return ENVELOPE + HEAD + NAMED * count + data;
    }
}
