"""Moves and openings of the challenger: the moves ask the contract to judge a value, and the openings prove
the challenger's case (dispute.md sections 4 and 5, encoding.md section 6).

Both sides agree on everything before the first differing leaf. So operands are taken from our own run, and
only the claimed value comes from the solver.
"""

from __future__ import annotations

from collections.abc import Callable

from protocol.commitments import CHUNK, constants_tree, state_tree
from protocol.commitments.hashing import BytesLike
from protocol.dispute.demands import demand
from protocol.dispute.moves import Move
from protocol.dispute.openings import (
    NO_LEAF,
    ChunkOpening,
    InstructionOpening,
    Leaf,
    open_chunk,
    open_instruction,
    open_leaf,
)
from protocol.dispute.partial_tree import PartialTree
from protocol.dispute.provider import Frame, Run
from protocol.dispute.view import GameView, TreeKind
from protocol.program.attributes import decode_index
from protocol.program.instruction import Instruction
from protocol.program.primitives import PRIMITIVES, Load, Reduction, chunks_needed


def loader(frame: Frame, instruction: Instruction) -> Load:
    """Return a function `load(operand, flat index)`, which gives the canonical bits of an operand's element
    in this frame.
    """
    values = [frame.value(operand.leaf) for operand in instruction.operands]

    def load(operand: int, element: int) -> int:
        size = instruction.operands[operand].type.dtype.itemsize
        return int.from_bytes(values[operand][element * size : (element + 1) * size], "little")

    return load


def operand_openings(
    frame: Frame,
    trace: PartialTree,
    instruction: Instruction,
    element: int,
    block: int,
    anchor: int | None = None,
) -> tuple[list[Leaf], list[ChunkOpening]]:
    """Open the operands that one block of an element needs. Return two lists: the operands' roots, with their
    paths in the solver's trace; and the chunks that the block needs.

    The first list has one entry for each operand of the instruction: the operand's root, or `NO_LEAF` if the
    operand is not needed. The path of a root starts at the operand's leaf. It ends below the lowest node that
    covers both this leaf and leaf `anchor`. If no anchor is given, the path of the first needed operand goes
    up to the trace's root, and that operand's leaf is the anchor for the others.
    """
    chunks = [
        open_chunk(k, index, frame.value(instruction.operands[k].leaf))
        for k, index in chunks_needed(instruction, element, block, loader(frame, instruction))
    ]
    operands = [NO_LEAF] * len(instruction.operands)
    for opening in chunks:
        leaf = instruction.operands[opening.operand].leaf
        if operands[opening.operand] is not NO_LEAF:
            continue
        path = trace.path(leaf) if anchor is None else trace.path_beside(leaf, anchor)
        operands[opening.operand] = Leaf(frame.root(leaf), path)
        anchor = leaf if anchor is None else anchor
    return operands, chunks


def compare_value(
    game: GameView,
    frame: Frame,
    trace: PartialTree,
    n: int,
    value: Leaf,
    known: Callable[[BytesLike], PartialTree],
) -> Move:
    """The challenger's move if the solver's value of primitive n differs from our own. If the first wrong
    chunk of the solver's value is not known yet, the move demands a node on the way to this chunk. If it is
    known, the move is about the first wrong element: if this element has several blocks, the move selects it,
    so that it is split; otherwise the move has it judged.

    `known` takes our own value and returns the solver's tree.
    """
    instruction = frame.program.instructions[n]
    opened = open_instruction(frame.program, n)
    own = frame.value(instruction.first)
    tree = known(own)
    node = tree.first_difference()
    assert node is not None, "roots differ, so some chunk does"
    index = node[0]
    data = tree.data(index) if node[1] == 1 else None
    if data is None:
        return demand(game, TreeKind.VALUE, tree, node, opened, value, len(own))
    size = instruction.result.dtype.itemsize
    start = index * CHUNK
    element = next(
        (start + at) // size
        for at in range(0, len(data), size)
        if data[at : at + size] != own[start + at : start + at + size]
    )
    claimed = ChunkOpening(0, index, data, tree.path(index))
    primitive = PRIMITIVES[instruction.op]
    if isinstance(primitive, Reduction) and primitive.blocks(instruction) > 1:
        return Move(
            "selectElement",
            (game.game, game.head, opened, element, value, claimed),
            f"{instruction.op.name.lower()} {n}, element {element}: state its blocks",
        )
    operands, chunks = operand_openings(frame, trace, instruction, element, 0, instruction.first)
    return Move(
        "judge",
        (game.game, game.head, opened, element, operands, chunks, value, claimed),
        f"{instruction.op.name.lower()} {n}, element {element}",
    )


def edge_input(
    game: GameView,
    run: Run,
    n: int,
    opened: InstructionOpening,
    instruction: Instruction,
    value: Leaf,
    caller: tuple[Instruction, Frame, PartialTree] | None,
) -> Move:
    """The move if input instruction n does not hold the frame's input. It opens the value from which the
    input is taken.
    """
    k = decode_index(instruction.attributes)
    if caller is not None:
        call, frame, trace = caller
        leaf = call.operands[k].leaf
        source, call_bytes = Leaf(frame.root(leaf), trace.path(leaf)), call.encode()
    else:
        call_bytes = b""
        tensors = list(run.tensor_roots(game.segment, game.step - 1))
        if k < len(tensors):
            source = open_leaf(state_tree(tensors), k, tensors[k])
        else:
            constants = list(run.constant_roots())
            k -= len(tensors)
            source = open_leaf(constants_tree(constants), k, constants[k])
    return Move(
        "judgeInput",
        (game.game, game.head, opened, value, source, *_around(game), call_bytes),
        f"input {n}",
    )


def edge_output(
    game: GameView,
    frame: Frame,
    trace: PartialTree,
    k: int,
    target: Leaf,
    call: bytes,
) -> Move:
    """The move if the claimed output k of the frame differs from the value in the frame's trace. `target`
    opens the claim.
    """
    n, instruction = frame.program.output(k)
    leaf = instruction.operands[0].leaf
    value = Leaf(frame.root(leaf), trace.path(leaf))
    return Move(
        "judgeOutput",
        (
            game.game,
            game.head,
            open_instruction(frame.program, n),
            value,
            target,
            *_around(game),
            call,
        ),
        f"output {k}",
    )


def _around(game: GameView) -> tuple[bytes, bytes]:
    """Two words that tell the contract where an input comes from or where an output goes. In the top frame,
    they are the roots of the states before and after the step. In a callee, they are the key of the caller's
    claim and 32 zero bytes.
    """
    return (game.frame_keys[-2], bytes(32)) if game.path else (game.before, game.after)
