"""Worst errors of the elementary functions over all 2^32 inputs; the format is described in this folder's README.

    python -m tests.vectors.elementary_errors [FUNCTION ...]

measures again and writes `elementary_errors.json`, about two minutes for each function on two cores. The inputs are cut
into 16 slices by the first four bits of their pattern, so a test can take them one at a time. The reference is float64
of numpy and torch, whose own error is below 2^-28 of an f32 ulp; worst cases are confirmed with mpmath by the tests.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from protocol.numerics import elementary_torch

PATH = Path(__file__).with_name("elementary_errors.json")
SLICES = 16
BLOCK = 1 << 15
SIN_COS_LAST = 2.0**15
LARGEST = 2.0**128 - 2.0**103
"""Reals from here on round to infinity in f32."""

Array = NDArray[Any]


def _by_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Array], Array]:
    return lambda x: function(torch.from_numpy(x)).numpy()


def _within(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: np.where(np.abs(x) <= SIN_COS_LAST, function(x), np.nan)


REFERENCE: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "erf": _by_torch(torch.erf),
    "sin": _within(_by_torch(torch.sin)),
    "cos": _within(_by_torch(torch.cos)),
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
}
"""Each function in float64. sin and cos are NaN beyond 2^15."""


@dataclass(frozen=True, order=True)
class Worst:
    """The worst error of a function over some inputs: the largest |f(x) - true| / ulp(true), and the bits of
    x and f(x) for the input that has it. An ulp is at least 2^-149.
    """

    ulp: float
    at: int
    result: int


def kernel(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """The function on f32 tensors."""
    function: Callable[[torch.Tensor], torch.Tensor] = getattr(elementary_torch, f"{name}_f32")
    return function


def worst(name: str, patterns: Array, floor: float = 0.0) -> Worst:
    """The worst case over uint32 bit patterns. If no error exceeds `floor` ulp, the result may be the first
    pattern, with its error given as 0 ulp.

    Raises AssertionError unless NaN, infinities and overflows are exactly as they must be.
    """
    x = patterns.view(np.float32)
    got = kernel(name)(torch.from_numpy(x)).numpy()
    with np.errstate(all="ignore"):
        true = REFERENCE[name](x.astype(np.float64))
        if np.isnan(true[0]) and np.isnan(true).all():  # outside the function's domain
            assert np.isnan(got).all(), name
            return Worst(0.0, int(patterns[0]), 0x7FC00000)
        # An ulp is at least 2^-24 of its number: most inputs need no closer look. NaN and infinities get one.
        near = np.abs(got - true) <= np.abs(true) * (floor * 2.0**-24)
        (close,) = np.nonzero(~near)
        got, true = got[close], true[close]
        special = ~(np.abs(true) < LARGEST)
        expected = true[special].astype(np.float32)
        assert np.array_equal(got[special], expected, equal_nan=True), name
        finite = close[~special]
        got, true = got[~special], true[~special]
        errors = np.abs(got - true) * np.exp2(-np.maximum(np.frexp(true)[1] - 24, -149).astype(np.float64))
    if not errors.size:
        first = kernel(name)(torch.from_numpy(x[:1])).view(torch.int32)
        return Worst(0.0, int(patterns[0]), int(first) & 0xFFFFFFFF)
    at = int(np.argmax(errors))
    assert np.isfinite(errors[at]), name
    return Worst(float(errors[at]), int(patterns[finite[at]]), int(got.view(np.uint32)[at]))


def worst_of_slice(name: str, number: int) -> Worst:
    """The worst case over the 2^28 inputs whose first four bits are `number`, on all cores."""

    def part(start: int) -> Worst:
        found = Worst(0.0, 0, 0)
        for at in range(start, start + 2**24, BLOCK):
            found = max(found, worst(name, np.arange(at, at + BLOCK, dtype=np.uint32), found.ulp))
        return found

    first = number << 28
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return max(pool.map(part, range(first, first + 2**28, 2**24)))


def table() -> dict[str, list[Worst]]:
    """The file's contents: for each function the worst case of each slice."""
    columns = json.loads(PATH.read_text())["functions"]
    return {
        name: [
            Worst(ulp, int(at, 16), int(result, 16))
            for ulp, at, result in zip(c["ulp"], c["at"], c["result"], strict=True)
        ]
        for name, c in columns.items()
    }


def main() -> None:
    """Measure the named functions, or all, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help=" ".join(REFERENCE))
    arguments = parser.parse_args()
    document = json.loads(PATH.read_text()) if PATH.exists() else {"functions": {}}
    for name in arguments.functions or REFERENCE:
        found = [worst_of_slice(name, number) for number in range(SLICES)]
        document["functions"][name] = {
            "measured": datetime.date.today().isoformat(),
            "worst": round(max(found).ulp, 4),
            "ulp": [round(w.ulp, 6) for w in found],
            "at": [f"0x{w.at:08x}" for w in found],
            "result": [f"0x{w.result:08x}" for w in found],
        }
        document["functions"] = {
            key: document["functions"][key] for key in REFERENCE if key in document["functions"]
        }
        PATH.write_text(json.dumps(document, indent=1) + "\n")
        print(name, max(found), flush=True)


if __name__ == "__main__":
    main()
