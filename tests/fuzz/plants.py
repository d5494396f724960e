"""Errors to plant in the compiled libraries, and the calls that show them (test_sanitizers.py)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from protocol.numerics.kernels import native
from tests.fuzz import layers, recorded


class Plant(NamedTuple):
    """A planted error: the file, its right line, the wrong one, the source to recompile, what the driver or
    the sanitizers report, and the calls.
    """

    file: str
    right: str
    wrong: str
    source: str
    report: str
    calls: Callable[[], list[bytes]]
    number: int = 0
    """Which occurrence of the right line is replaced, counted from 0."""


def products() -> list[bytes]:
    return recorded.products(Random("sanitized products 0"), 80, 8_000)


def sliced() -> list[bytes]:
    return products() if "amx" in native.variants() else []


def attentions() -> list[bytes]:
    return layers.attentions(Random("planted attention"), 5)


def convolutions() -> list[bytes]:
    return layers.convolutions(Random("planted convolutions"), 20)


def lone_convolutions() -> list[bytes]:
    return layers.convolutions(Random("planted convolutions"), 20, alone=True)


def channels() -> list[bytes]:
    return layers.channels(Random("planted channels"), 20)


def functions() -> list[bytes]:
    return recorded.fused(Random("planted functions"), 6)


def elements() -> list[bytes]:
    return recorded.elements(Random("planted elements"), 3)


def cells() -> list[bytes]:
    return recorded.cells(Random("planted cells"), 8)


def lanes() -> list[bytes]:
    return [c for block in (1, 8) for c in layers.lanes(Random("planted lanes"), 4, block)]


def words() -> list[bytes]:
    return recorded.random_words(Random("planted words"), 10)


def hashes() -> list[bytes]:
    return layers.hashes(Random("planted hashes"))


BEYOND, OTHER_MODE = "heap-buffer-overflow", "of another floating-point mode"
PORTABLE = "variant_portable.cpp"
PLANTS = {
    "a term beyond an odd number": Plant(
        "variant_body.h",
        "if (!whole_strip || k + 1 == s.terms) {",
        "if (!whole_strip) {",
        PORTABLE,
        BEYOND,
        products,
    ),
    "a strip beyond the last row": Plant(
        "variant_body.h",
        "const bool whole_strip = first * PANEL + STRIP <= s.rows;",
        "const bool whole_strip = first * PANEL + STRIP <= s.rows + 8;",
        PORTABLE,
        BEYOND,
        products,
    ),
    "a square that overflows": Plant(
        "variant_body.h",
        "return static_cast<uint32_t>(q * q);",
        "return static_cast<uint32_t>(q * q * 64);",
        PORTABLE,
        "signed integer overflow",
        products,
    ),
    "digits of a strip beyond the last row": Plant(
        "variant_amx.cpp",
        "const bool whole_strip = first * PANEL + STRIP <= s.rows;",
        "const bool whole_strip = first * PANEL + STRIP <= s.rows + 8;",
        "variant_amx.cpp",
        BEYOND,
        sliced,
    ),
    "digits of terms beyond a row's last": Plant(
        "variant_amx.cpp",
        "if (count < SLICE_TERMS) std::memcpy(edge",
        "if (count < 2) std::memcpy(edge",
        "variant_amx.cpp",
        BEYOND,
        sliced,
    ),
    "a key beyond a mask's last": Plant(
        "attention.cpp",
        "(row[n - 1] != 0) == hides",
        "(row[n] != 0) == hides",
        "attention.cpp",
        BEYOND,
        attentions,
    ),
    "a query beyond the last": Plant(
        "attention.cpp",
        "for (int64_t i = 0; i < M_; ++i)\n                f_.integers",
        "for (int64_t i = 0; i <= M_; ++i)\n                f_.integers",
        "attention.cpp",
        BEYOND,
        attentions,
    ),
    "a row of results beyond a panel's last": Plant(
        "convolution_positions.h",
        "end = std::min(first + PANEL_X, m), plane",
        "end = first + PANEL_X, plane",
        "convolution.cpp",
        BEYOND,
        lone_convolutions,
    ),
    "a gradient of weights beyond a panel's last": Plant(
        "convolution_weights.h",
        "for (int row = 0; row < rows; ++row)",
        "for (int row = 0; row < PANEL_X; ++row)",
        "convolution.cpp",
        BEYOND,
        lone_convolutions,
    ),
    "a sample beyond the last": Plant(
        "convolution_weights.h",
        "const float *high = 2 * couple + 1 < p.samples ? low + channels * whole : nullptr;",
        "const float *high = low + channels * whole;",
        "convolution.cpp",
        BEYOND,
        convolutions,
    ),
    "an element beyond a channel's last": Plant(
        "channels_body.h",
        "for (int64_t i = 0; i < count; ++i) sum += fixed30(term(i), s);",
        "for (int64_t i = 0; i <= count; ++i) sum += fixed30(term(i), s);",
        PORTABLE,
        BEYOND,
        channels,
    ),
    "an element beyond a row's last": Plant(
        "fused_body.h",
        "for (int64_t i = 0; i < columns; ++i) to[i] = g[i] * y[i];",
        "for (int64_t i = 0; i <= columns; ++i) to[i] = g[i] * y[i];",
        PORTABLE,
        BEYOND,
        functions,
    ),
    "an exponential beyond a row's last": Plant(
        "fused_body.h",
        "for (int64_t i = 0; i < n; ++i) powers[i] = list_exp(from[start + i] - largest);",
        "for (int64_t i = 0; i < BLOCK; ++i) powers[i] = list_exp(from[start + i] - largest);",
        PORTABLE,
        BEYOND,
        functions,
    ),
    "a word beyond the last": Plant(
        "philox.cpp",
        "rest < 4 * LANES ? static_cast<int>(rest) : 4 * LANES;",
        "rest < 2 ? static_cast<int>(rest) : 4 * LANES;",
        "philox.cpp",
        BEYOND,
        words,
    ),
    "a word beyond a part's last": Plant(
        "philox.cpp",
        "fill(part, start, start + count, start);",
        "fill(part, start, start + count + 1, start);",
        "philox.cpp",
        BEYOND,
        words,
    ),
    "an operand beyond the last": Plant(
        "elements_body.h",
        "for (int64_t i = 0; i < n; ++i) to[i] = paired",
        "for (int64_t i = 0; i <= n; ++i) to[i] = paired",
        PORTABLE,
        BEYOND,
        elements,
    ),
    "an operand beyond a single one": Plant(
        "elements_body.h",
        "paired<WHICH>(X_ONE ? x0 : x[i], ",
        "paired<WHICH>(x[i], ",
        PORTABLE,
        BEYOND,
        elements,
    ),
    "bytes as far apart as numbers": Plant(
        "fused.cpp",
        "assay::LE ? 1 : sizeof(float);",
        "assay::LE ? 4 : sizeof(float);",
        "fused.cpp",
        BEYOND,
        elements,
    ),
    "a condition beyond the last": Plant(
        "elements_body.h",
        "canonical(condition[i] ? a : b)",
        "canonical(condition[i + 1] ? a : b)",
        PORTABLE,
        BEYOND,
        elements,
    ),
    "a gate beyond a row's last": Plant(
        "fused_body.h",
        "k < count; ++k) block[k] = canonical(x[k] + product[k]);",
        "k < BLOCK; ++k) block[k] = canonical(x[k] + product[k]);",
        PORTABLE,
        BEYOND,
        cells,
    ),
    "a gate's gradient beyond a row's last": Plant(
        "fused_body.h",
        "for (int64_t k = 0; k < count; ++k) {\n                const float dh",
        "for (int64_t k = 0; k <= count; ++k) {\n                const float dh",
        PORTABLE,
        BEYOND,
        cells,
    ),
    "a number beyond a group's last": Plant(
        "lanes_body.h",
        "for (int64_t i = 0; i < size; ++i) kept[i] = canonical(decay",
        "for (int64_t i = 0; i <= size; ++i) kept[i] = canonical(decay",
        PORTABLE,
        BEYOND,
        lanes,
    ),
    "an index where no block has one": Plant(
        "lanes_body.h",
        "if (t.block > 1) t.index",
        "if (t.block > 0) t.index",
        PORTABLE,
        "null pointer",
        lanes,
    ),
    "a place beyond a block's last": Plant(
        "lanes_body.h",
        "if (place(own, k) < t.block) {",
        "if (place(own, k) < 256) {",
        PORTABLE,
        BEYOND,
        lanes,
    ),
    "a message's place beyond a block's last": Plant(
        "lanes_body.h",
        "if (place(inbox[w], k) < t.block)",
        "if (place(inbox[w], k) < 256)",
        PORTABLE,
        "out of bounds for type",
        lanes,
    ),
    "a byte beyond a row's last": Plant(
        "sha256.cpp",
        "std::memcpy(end + 1, row + l * width, width);",
        "std::memcpy(end + 1, row + l * width, width + 1);",
        "sha256.cpp",
        BEYOND,
        hashes,
    ),
    "a piece beyond a row's last": Plant(
        "sha256.cpp",
        "for (int64_t at = 0; at < width; at += PIECE) {",
        "for (int64_t at = 0; at <= width; at += PIECE) {",
        "sha256.cpp",
        BEYOND,
        hashes,
    ),
    **{
        f"its caller's mode in {file} of {source}, {number}": Plant(
            file,
            "const Mode mode;",
            "",
            source,
            OTHER_MODE,
            calls,
            number,
        )
        for file, source, count, calls in (
            ("attention.cpp", "attention.cpp", 2, attentions),
            ("convolution_positions.h", "convolution.cpp", 1, convolutions),
            ("convolution_weights.h", "convolution.cpp", 1, convolutions),
            ("divide.h", "channels.cpp", 1, channels),
            ("divide.h", "fused.cpp", 1, elements),
            ("divide.h", "lanes.cpp", 1, lanes),
        )
        for number in range(count)
    },
}
