"""The section of docs/numerics.md on the bits of convolutions, generated from the measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import mean, stdev
from typing import Any

from benchmarks.quality.convolutions import BATCHES, DEFAULT, EMULATED, MATTERS

Measured = Mapping[str, Any]


def convolutions_section(measured: Measured) -> Iterator[str]:
    """Three tables: gradients, training, time."""
    yield "## Which bits convolutions take\n"
    yield f"{measured['date']}, commit {measured['commit']}, {measured['hardware']}; by"
    yield "`python -m benchmarks.quality --convolutions`, with timm and torchvision installed. Weights are"
    yield "random, the data are digits enlarged to 32 x 32. A row names the bits of the forward pass, of the"
    yield "input's gradient and of the weight's gradient (G first).\n"
    yield "In networks with ReLU nearly all of the error comes from the forward pass. For some elements its"
    yield "rounding decides on which side of 0 a ReLU's operand falls. Each of them turns a whole term of the"
    yield "gradient on or off. Their number grows with the rounding, the gradient's error with its square root."
    yield "So 20 bits forward help much, and more bits for the gradients help little. Networks without kinks"
    yield "differ: ConvNeXt needs no more than 13 bits, and EfficientNet-B0 gains by the gradients' bits.\n"
    yield from _gradients(measured["gradients"])
    yield from _training(measured["trained"], measured["steps"])
    yield from _times(measured["times"])


def _gradients(networks: Mapping[str, Mapping[str, Measured]]) -> Iterator[str]:
    yield f"All are compared with float64 on the same batch; the worst of {len(BATCHES)} batches counts. The"
    yield "columns are the relative error of the loss; the norm of the gradient's difference over the"
    yield f"gradient's norm; and, over all tensors with {MATTERS:.1%} of the whole norm or more, the least cosine"
    yield "and the largest error of a norm.\n"
    yield "| model | bits | loss | gradient | least cosine | norm |"
    yield "|---|---|---|---|---|---|"
    for network, tables in networks.items():
        for table, found in tables.items():
            yield (
                f"| {network} | {_named(table)} | {found['loss']:.1e} | {found['gradient']:.2%} | "
                f"{1 - found['turned']:.6f} | {found['norm']:.2%} |"
            )
    yield ""
    yield "The arithmetic has no width of 16 x 16: those rows are of a model in float64 whose convolutions"
    yield "round their operands to 16 bits. It would take the same three products of i16 as 20 x 20.\n"


def _training(networks: Mapping[str, Mapping[str, Sequence[Measured]]], steps: int) -> Iterator[str]:
    if not networks:
        return
    yield f"Training, {steps} steps of 32 digits. All rows of a model have the same initial weights, batches and"
    yield "rates. A cell has the mean over the seeds, which count from 1, and in brackets the least and the"
    yield "most. A held-out image is 0.0034 of the accuracy:\n"
    yield "| model | bits | seeds | final training loss | held-out loss | held-out accuracy |"
    yield "|---|---|---|---|---|---|"
    for network, tables in networks.items():
        for table, runs in tables.items():
            figures = ("final training loss", "held-out loss", "held-out accuracy")
            cells = " | ".join(_spread([run[figure] for run in runs]) for figure in figures)
            yield f"| {network} | {_named(table)} | {len(runs)} | {cells} |"
    yield ""
    yield from _differences(networks)


def _differences(networks: Mapping[str, Mapping[str, Sequence[Measured]]]) -> Iterator[str]:
    yield "The default bits less float32, seed by seed; mean ± standard error:\n"
    for network, tables in networks.items():
        pairs = list(zip(tables[DEFAULT], tables["float32"], strict=True))
        if len(pairs) > 1:
            shown = (_difference(figure, pairs) for figure in ("held-out loss", "held-out accuracy"))
            yield f"- {network}, {len(pairs)} seeds: {', '.join(shown)}"
    yield ""


def _difference(figure: str, pairs: Sequence[tuple[Measured, Measured]]) -> str:
    found = [default[figure] - plain[figure] for default, plain in pairs]
    return f"{figure} {mean(found):+.4f} ± {stdev(found) / sqrt(len(found)):.4f}"


def _spread(found: Sequence[float]) -> str:
    return f"{mean(found):.4f} ({min(found):.4f}–{max(found):.4f})"


def _times(times: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[str]:
    yield "Processor time of a step of ResNet-18 (stem of 3 x 3, 32 images of 32 x 32) over that of a plain"
    yield "float32 step, side by side on one thread, on a machine busy with other work: median and middle half."
    yield "Wall time on two threads is in [performance](performance.md).\n"
    yield "| bits | exact / plain | middle half |"
    yield "|---|---|---|"
    for table, found in times.items():
        middle, low, high = found["ratio"]
        yield f"| {_named(table)} | {middle:.2f}x | {low:.2f}–{high:.2f} |"
    yield ""


def _named(table: str) -> str:
    marks = {DEFAULT: " (default)", EMULATED: " (emulated)"}
    return table + marks.get(table, "")
