"""The calls that fused kernels support: shapes and types of operands, and ranges of attributes.

A body consists of primitives that broadcast and accept several types. So it is also defined for operands that
its kernel does not support, such as a gain of one element or a gradient smaller than its tensor. Such a
program is valid, and anyone may post it. It runs by its body, because `function.recognise` returns a kernel
only for the forms below.

A form has one word for each operand. A letter is a dimension, with the same size wherever it occurs in the
form. A digit and a letter together are one dimension, whose size is that multiple of the letter's size. A
digit alone is a dimension of that size. `*` is any number of leading axes, the same wherever it occurs. `-`
is rank 0. `b:`, `i:` and `u:` mark u8, i32 and u32; other operands are f32. An operand with `?` may be
absent. Dimensions that occur only once are checked by the rules of the body.

The kernel of a pooling calls torch for each element of a window. So it is used only if these calls do not
take much longer than the body's cost says (`_is_pooled_in_few_calls`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from protocol.numerics.types import DType
from protocol.program.library.windows import Sliding
from protocol.program.types import TensorType

FORMS = {
    "linear": "*mk *nk n?",
    "matmul": "*mk *kn n?",
    "linear_grad_input": "*mk *kn",
    "linear_grad_weight": "*km *kn",
    "matmul_nt": "*mk *nk",
    "matmul_tn": "*km *kn",
    "sum_rows": "mk",
    "sum_columns": "kn",
    "sum_units": "*" + 15 * " *?",
    "cumulative_sum": "*k",
    "argmax_rows": "mk",
    **dict.fromkeys(("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt"), "*"),
    "keep_mask": "u:2 u:-",
    "draw_batch": "u:2 u:-",
    "draw_from_epoch": "u:2 u:-",
    "softmax": "*n",
    "softmax_grad": "*n *n",
    "log_softmax": "*n",
    "log_softmax_grad": "*n *n",
    "nll_loss": "bc i:b c?",
    "nll_loss_grad": "- i:b - c? | b i:b - c?",
    "mse_loss": "n n",
    "mse_loss_grad": "- n n | n n n",
    "layer_norm": "mn n? n?",
    "layer_norm_grad": "mn mn m1 m1 n?",
    "layer_norm_grad_gain": "mn mn m1 m1",
    "embedding_grad": "nc i:n",
    "gelu": "*",
    "gelu_grad": "* *",
    "silu": "*",
    "silu_grad": "* *",
    "lane_emit": "n n n",
    "lane_absorb": f"n n i:- b:g b:g i:h b:g b:g i:h -{15 * ' b:g? b:g? i:h? -?'}"
    f" | n n i:- b:n i:h b:n i:h -{15 * ' b:n? i:h? -?'}",
    "sgd": "* * -",
    "sgd_momentum": "* * * -",
    "adamw_scales": "- - -",
    "adamw": "* * * * - - - *?",
    "square_sum": "*",
    "clip_scale": "t",
    "clip_value": "*",
    "conv": "nchw odyx o?",
    "conv_grad_input": "nohw odyx",
    "conv_grad_weight": "nohw ncyx",
    "max_pool": "nchw",
    "max_pool_grad": "nchw i:nchw",
    "mean_pool": "nchw",
    "mean_pool_grad": "nchw",
    "batch_statistics": "ncs",
    "batch_normalise": "ncs c c c? c?",
    "batch_norm_sums": "ncs ncs c c",
    "batch_norm_grad": "ncs ncs c c c c c?",
    "lstm": "tb4h bh bh 4hh 4h?",
    "lstm_grad": "tbh tbh tb4h tbh tbh 4hh",
    "gru": "tb3h bh 3hh 3h?",
    "gru_grad": "tbh tb3h tbh tbh 3hh",
    "rnn": "tbh bh hh h?",
    "rnn_grad": "tbh tbh hh",
}
"""Forms by library function; a bar separates alternatives."""

SIZE = range(1, 2**31)
WORD = range(2**32)
FLAG = range(2)
RANGES: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("px", "py"), (13, 20)),
    **dict.fromkeys(("batch", "classes", "columns", "divisor", "groups", "height", "rows", "width"), SIZE),
    **{f"{name}_{axis}": SIZE for name in ("kernel", "stride", "dilation") for axis in "yx"},
    **{f"padding_{axis}": range(2**31) for axis in "yx"},
    **{f"d{axis}": SIZE for axis in range(8)},
    **dict.fromkeys(("below", "stream"), WORD),
    "block": (1, 8, 16, 32, 64),
    "ignore": range(-(2**31), 2**31),
    "most_exponent": range(-94, 129),
    "reduction": range(3),
}
"""Ranges of integer attributes. Outside them a kernel may fail although the body works."""
FLAGS = frozenset({"gradient_in_windows", "include_padding", "nesterov", "relu", "safe", "tanh"})
REALS = frozenset({"beta1", "beta2", "decay", "eps", "limit", "momentum", "rate", "weight_decay"})
LARGEST_REAL, LARGEST_WHOLE = 2.0**128 - 2.0**104, 1 << 53
"""The largest f32, and a bound for integers. The body rounds a number to float64 and then to f32, and torch
rounds an integer only once, so the two differ for integers that float64 does not hold. torch refuses numbers
above the largest f32, some of which the body rounds down.
"""

POOLINGS = frozenset({"max_pool", "max_pool_grad", "mean_pool", "mean_pool_grad"})
FEW_TAPS, LARGE_CALL = 16, 256
"""The kernel of a pooling is used for windows of at most `FEW_TAPS` elements, and for larger windows if each
of the kernel's calls of torch covers at least `LARGE_CALL` elements.

For each element of a window, a kernel makes five to ten calls of about 4 us, so it takes at most 40 us. The
cost of the body (`program.cost`) covers 100 us for its instructions, and about 20 ns for each element of each
window. For windows of at most 16 elements, the 100 us are at least 6 us for each element of a window. With
256 windows, the 20 ns add up to 5 us for each element of a window. So kernels take at most eight times as
long as the cost says (measured; the smallest bodies take four times as long).
"""

# A factor and a letter, or a number.
_AXIS = re.compile(r"(\d?)([a-z])|(\d)")
_TYPES = {"b": DType.U8, "i": DType.I32, "u": DType.U32}


def takes(name: str, operands: Sequence[TensorType], attributes: Mapping[str, object]) -> bool:
    """Whether the kernel of library function `name` supports these attributes, and operands of these types."""
    forms = (form.split() for form in FORMS[name].split("|"))
    return (
        any(_fits(form, operands) for form in forms)
        and all(_in_range(key, value) for key, value in attributes.items())
        and (name not in POOLINGS or _is_pooled_in_few_calls(operands[0], attributes))
    )


def _is_pooled_in_few_calls(x: TensorType, attributes: Mapping[str, Any]) -> bool:
    """Whether a pooling of x [N, C, H, W] has either small windows (at most `FEW_TAPS` elements) or a large
    result (at least `LARGE_CALL` elements).

    The kernel makes calls for each element of a window, and each call covers all elements of the result.
    False if the attributes needed are missing.
    """
    try:
        taps = attributes["kernel_y"] * attributes["kernel_x"]
        if taps <= FEW_TAPS:
            return True
        if "height" in attributes:
            plane = attributes["height"] * attributes["width"]
        elif "rows" in attributes:
            plane = attributes["rows"] * attributes["columns"]
        else:
            sliding = Sliding(**{field.name: attributes[field.name] for field in fields(Sliding)})
            plane = math.prod(max(0, count) for count in sliding.count(*x.shape[2:]))
    except KeyError:
        return False
    return bool(math.prod(x.shape[:2]) * plane >= LARGE_CALL)


def _in_range(name: str, value: object) -> bool:
    if name in FLAGS:
        return isinstance(value, int) and value in FLAG
    if name in REALS:
        most = LARGEST_WHOLE if isinstance(value, int) else LARGEST_REAL
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= most
    # In Python True equals 1, so it would pass as a number of rows.
    return isinstance(value, int) and not isinstance(value, bool) and value in RANGES.get(name, ())


def _fits(form: Sequence[str], operands: Sequence[TensorType]) -> bool:
    least = sum(not word.endswith("?") for word in form)
    if not least <= len(operands) <= len(form):
        return False
    bound: dict[str, tuple[int, ...]] = {}
    return all(_binds(word.rstrip("?"), type_, bound) for word, type_ in zip(form, operands, strict=False))


def _binds(word: str, type_: TensorType, bound: dict[str, tuple[int, ...]]) -> bool:
    prefix, _, text = word.rpartition(":")
    any_leading, axes = text.startswith("*"), _AXIS.findall(text)
    leading = type_.rank - len(axes)
    if type_.dtype is not _TYPES.get(prefix, DType.F32) or leading < 0 or (leading and not any_leading):
        return False
    same = not any_leading or bound.setdefault("*", type_.shape[:leading]) == type_.shape[:leading]
    return same and all(
        _is_of_size(factor, letter, number, size, bound)
        for (factor, letter, number), size in zip(axes, type_.shape[leading:], strict=True)
    )


def _is_of_size(factor: str, letter: str, number: str, size: int, bound: dict[str, tuple[int, ...]]) -> bool:
    """Whether an axis may have size `size`. The form states the axis either as `number`, or as `factor` times
    the size of `letter`. `bound` records the size of each letter at its first use.
    """
    if number:
        return size == int(number)
    one, rest = divmod(size, int(factor or 1))
    return not rest and bound.setdefault(letter, (one,)) == (one,)
