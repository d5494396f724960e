"""The groups of tensors in which a checkpoint is served."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments.groups import GROUP_BYTES, GROUP_TENSORS, cut, groups

SIZES = st.lists(st.integers(0, 5) | st.integers(1, 2 * GROUP_BYTES), min_size=1, max_size=40)


@given(SIZES)
def test_each_tensor_is_in_one_group_and_only_a_single_one_is_larger_than_a_group(sizes: list[int]) -> None:
    found = groups(sizes)
    assert [k for numbers in found for k in numbers] == list(range(len(sizes)))
    held = [sum(sizes[k] for k in numbers) for numbers in found]
    assert all(len(numbers) == 1 or total <= GROUP_BYTES for numbers, total in zip(found, held, strict=True))
    assert all(first + second > GROUP_BYTES for first, second in pairwise(held))


def test_a_group_has_a_greatest_number_of_tensors() -> None:
    assert list(map(len, groups([4] * (2 * GROUP_TENSORS + 1)))) == [GROUP_TENSORS, GROUP_TENSORS, 1]


def test_a_group_is_cut_into_its_tensors() -> None:
    assert cut(b"abbccc", [1, 2, 0, 3]) == [b"a", b"bb", b"", b"ccc"]
