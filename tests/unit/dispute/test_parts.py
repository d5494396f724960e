"""The parts of a split: their sizes and their blocks. Also how frames and elements are named for people, and
how the bits of an element are shown as a number.
"""

from __future__ import annotations

import pytest

from protocol.dispute.names import WORD, Names, bits, number, position
from protocol.dispute.splitting import MAX_WORDS, part_size, parts
from protocol.numerics.types import DType
from protocol.program import Builder, Program, TensorType


@pytest.mark.parametrize(
    ("blocks", "size"), [(1, 1), (128, 1), (129, 128), (128**2, 128), (128**2 + 1, 128**2), (128**3, 128**2)]
)
def test_a_part_is_the_least_power_of_128_that_gives_128_parts_at_most(blocks: int, size: int) -> None:
    assert part_size(blocks) == size
    assert len(parts(5, 5 + blocks)) == -(-blocks // size) <= MAX_WORDS == 128


def test_parts_cover_the_blocks_in_order_and_the_last_may_be_shorter() -> None:
    assert parts(10, 13) == [(10, 11), (11, 12), (12, 13)]
    assert parts(3, 3 + 300) == [(3, 131), (131, 259), (259, 303)]


def test_a_frame_is_named_by_the_programs_on_the_way_to_it() -> None:
    scalar = TensorType(DType.I32, ())
    programs: list[Program] = []
    for name in ("inner", "middle", "step"):
        b = Builder(name)
        x = b.input(scalar)
        b.output(b.call(programs[-1], x)[0] if programs else b.add(x, x))
        programs.append(b.build())
    inner, _, step = programs
    (call,) = step.calls()
    names = Names(step)
    assert names.path([]) == ["step"]
    assert names.path([call, call]) == ["step", "middle", "inner"]
    assert names.frame([call, call]) is inner
    assert names.instruction([call, call], 1) is inner.instructions[1]


def test_an_element_is_named_by_its_indices() -> None:
    shape = TensorType(DType.F32, (2, 3, 5))
    assert [position(shape, element) for element in (0, 4, 5, 14, 15, 29)] == [
        [0, 0, 0], [0, 0, 4], [0, 1, 0], [0, 2, 4], [1, 0, 0], [1, 2, 4]
    ]  # fmt: skip
    assert position(TensorType(DType.F32, ()), 0) == []


def test_the_bits_of_an_element_are_as_wide_as_its_type() -> None:
    assert bits(TensorType(DType.F32, (1,)), 0x3F800000) == "0x3f800000"
    assert bits(TensorType(DType.F32, (1,)), 1) == "0x00000001"
    assert bits(WORD, -1) == "0x" + "f" * 16
    assert bits(TensorType(DType.I32, ()), -2) == "0xfffffffe"


def test_an_element_is_shown_as_the_number_that_its_bits_are() -> None:
    assert number(TensorType(DType.F32, ()), 0x3F800000) == "1"
    assert number(TensorType(DType.F32, ()), 0x40490FDB) == "3.14159274"
    assert number(TensorType(DType.I32, ()), 0xFFFFFFFE) == "-2"
    assert number(WORD, (1 << 64) - 3) == number(WORD, -3) == "-3"
