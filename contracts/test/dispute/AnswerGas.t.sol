// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IDisputeGame} from "../../src/interfaces/IDisputeGame.sol";
import {GameId} from "../../src/types/Ids.sol";
import {Opcode, TypeCode} from "../../src/types/Instruction.sol";
import {Node} from "../../src/types/Openings.sol";
import {LeafTree} from "./LeafTree.sol";
import {Play} from "./Play.sol";
import {StepProgram} from "./StepProgram.sol";

/// @title No answer to a demanded node costs more gas than its deposit assumes, and the deposit assumes
/// little more.
/// @notice Whole transactions, including calldata and the 21,000. Each case is the most expensive of its
/// kind: the solver's first credit in the game, and bytes almost none of which are zero. The value has 16
/// full chunks; nodes of its tree, or a leaf of the trace, are demanded.
contract AnswerGasTest is Play {
    bytes private value;
    bytes32[] private chunks;
    GameId private id;

    function setUp() public override {
        super.setUp();
        bytes memory shape = abi.encodePacked(TypeCode.I32, uint8(2), uint32(16), uint32(256));
        bytes[] memory list = new bytes[](2);
        list[0] = abi.encodePacked(Opcode.CONSTANT, uint32(0), uint8(0), uint8(1), shape, uint32(0));
        list[1] = abi.encodePacked(Opcode.CONSTANT, uint32(1), uint8(0), uint8(1), shape, uint32(0));
        top = StepProgram.program(list, 2);
        value = _random(16 * 1024);
        topValues = [value, value];
        chunks = LeafTree.chunks(value);
        _start();
        id = _inTop();
    }

    /// @dev An isolated transaction has no base fee, so the deposit here comes from the data fee.
    function _dataFee() internal pure override returns (uint64) {
        return 1;
    }

    /// forge-config: default.isolate = true
    function test_gas_innerNode_isCounted_succeeds() public {
        _inner(1);
    }

    /// forge-config: default.isolate = true
    function test_gas_innerNodeOfSixteen_isCounted_succeeds() public {
        _inner(16);
    }

    /// forge-config: default.isolate = true
    function test_gas_chunk_isCounted_succeeds() public {
        _leaf(1, 15);
    }

    /// forge-config: default.isolate = true
    function test_gas_chunkOfSixteen_isCounted_succeeds() public {
        _leaf(16, 15);
    }

    /// forge-config: default.isolate = true
    function test_gas_root_isCounted_succeeds() public {
        _root(1);
    }

    /// forge-config: default.isolate = true
    function test_gas_rootOfSixteen_isCounted_succeeds() public {
        _root(16);
    }

    // ------------------------------------------------------------------ parts

    function _inner(uint256 count) private {
        Node[] memory nodes = _times(_node(chunks, 0, 16)[0], count);
        _demandWith(id, IDisputeGame.Tree.Value, _opening(), nodes);
        vm.prank(solver);
        game.revealNode(id, 0, 16 * 1024, _named(nodes), chunks);
        _isCounted(count, 0);
    }

    function _leaf(uint256 count, uint256 lo) private {
        Node[] memory nodes = _times(_node(chunks, lo, 1)[0], count);
        _demandWith(id, IDisputeGame.Tree.Value, _opening(), nodes);
        bytes memory data = LeafTree.chunk(value, lo);
        vm.prank(solver);
        game.revealLeaf(id, 0, 16 * 1024, _named(nodes), data);
        _isCounted(count, 1024);
    }

    function _root(uint256 count) private {
        Node[] memory nodes = _times(_node(LeafTree.leaves(topRoots), 1, 1)[0], count);
        IDisputeGame.ValueOpening memory opening;
        opening.instruction.program = top.opening;
        _demandWith(id, IDisputeGame.Tree.Trace, opening, nodes);
        vm.prank(solver);
        game.revealLeaf(id, 0, 0, _named(nodes), abi.encodePacked(topRoots[1]));
        _isCounted(count, 32);
    }

    /// @dev At a base fee of 1 wei a deposit is twice the gas, plus the data fee.
    function _isCounted(uint256 count, uint256 leafBytes) private {
        uint256 used = vm.lastCallGas().gasTotalUsed;
        uint256 counted = (game.depositFor(count, leafBytes, 1) - game.depositFor(count, leafBytes, 0)) / 2;
        assertGt(game.creditOf(solver), 0);
        emit log_named_uint("used", used);
        emit log_named_uint("counted", counted);
        assertLe(used, counted, "an answer costs more than its deposit counts");
        assertLe(counted, used * 11 / 10, "a deposit counts too much");
    }

    function _opening() private view returns (IDisputeGame.ValueOpening memory opening) {
        opening.instruction = _open(top, 0);
        opening.value = _leaf(topRoots, 0);
    }

    function _times(Node memory node, uint256 count) private pure returns (Node[] memory nodes) {
        nodes = new Node[](count);
        for (uint256 k; k < count; ++k) {
            nodes[k] = node;
        }
    }

    function _random(uint256 length) private pure returns (bytes memory data) {
        data = new bytes(length);
        for (uint256 k; k < length; k += 32) {
            bytes32 word = keccak256(abi.encode(length, k));
            assembly ("memory-safe") {
                mstore(add(add(data, 0x20), k), word)
            }
        }
    }
}
