"""The runs of the study, in the order in which they are worth playing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from examples.gpt import Shape

SHAPES = {
    "0.1M": Shape(layers=2, heads=2, width=64, context=32, dropout=0.0),
    "0.9M": Shape(layers=4, heads=4, width=128, context=64, dropout=0.0),
    "5M": Shape(layers=6, heads=8, width=256, context=128, dropout=0.0),
}
STEPS = 1_000
"""Inner steps of a lane, and steps of all-reduce."""
GARBAGE = "garbage for ten rounds"
MOST_RUNS, MOST_CORE_HOURS = 60, 12.0


@dataclass(frozen=True)
class Run:
    """One training. `rule` says what is exchanged every `inner` steps: `lanes` one of `block` numbers by the programs,
    `mean` and `nesterov` the float32 differences, `alone` nothing, `all-reduce` the gradients of every step."""

    size: str
    rule: str
    width: int = 1
    inner: int = 1
    block: int = 1
    rate: float = 1.0
    decay: float = 1.0
    momentum: float = 0.0
    fault: str = ""
    seed: int = 1
    steps: int = STEPS

    def text(self) -> str:
        """In words, without size and seed."""
        if self.rule in ("alone", "all-reduce"):
            return "one lane alone" if self.rule == "alone" else f"all-reduce, {self.width} machines"
        words = [f"{self.width} lanes, {self.inner} steps a round"]
        if self.rule == "lanes":
            words.append(f"1/{self.block}, int8" if self.block > 1 else "all, int8")
        else:
            words.append("float32 mean" if self.rule == "mean" else f"Nesterov {self.momentum:g}")
        words += [f"rate {self.rate:g}"] * (self.rate != 1) + [f"feedback times {self.decay:g}"] * (
            self.decay != 1
        )
        return ", ".join(words + [self.fault] * bool(self.fault))


def runs() -> list[Run]:
    """All of them, each once."""
    return list(dict.fromkeys((*_screen(), *_faster(), *_confirmed(), *_large(), *_faults())))


def _screen() -> Iterator[Run]:
    """A seed of the smallest model."""
    lanes = Run("0.1M", "lanes", width=4)
    yield Run("0.1M", "alone")
    yield from (Run("0.1M", "all-reduce", width=width) for width in (4, 2, 8))
    yield from (replace(lanes, inner=inner, block=block) for inner in (5, 20, 50) for block in (1, 8, 16, 64))
    yield from (replace(lanes, rule="mean", inner=inner) for inner in (5, 20, 50))
    yield from (replace(lanes, width=width, inner=inner, block=8) for width in (2, 8) for inner in (5, 20))
    yield from (replace(lanes, width=8, inner=inner, block=1) for inner in (5, 20))
    for inner in (5, 20):
        yield replace(lanes, inner=inner, block=8, rate=0.7)
        yield replace(lanes, inner=inner, block=8, decay=0.95)
        yield replace(lanes, rule="nesterov", inner=inner, rate=0.7, momentum=0.9)
        yield replace(lanes, rule="nesterov", inner=inner, rate=0.7, momentum=0.5)


def _faster() -> Iterator[Run]:
    """Outer rates above 1: the mean of few differences may be too short a step."""
    lanes = Run("0.1M", "lanes", width=4, inner=5)
    yield from (replace(lanes, block=block, rate=rate) for block in (1, 8) for rate in (1.5, 2.0))


def _confirmed() -> Iterator[Run]:
    """What the screen found best for each traffic, with three seeds of a larger model."""
    for seed in (1, 2, 3):
        yield Run("0.9M", "alone", seed=seed)
        yield Run("0.9M", "all-reduce", width=4, seed=seed)
        yield Run("0.9M", "lanes", width=4, inner=5, block=1, seed=seed)
        yield Run("0.9M", "lanes", width=4, inner=5, block=8, seed=seed)


def _large() -> Iterator[Run]:
    yield Run("5M", "alone")
    yield Run("5M", "lanes", width=4, inner=5, block=8)


def _faults() -> Iterator[Run]:
    lanes = Run("0.1M", "lanes", width=4, inner=5, block=8)
    for fault in (
        "one late every second round",
        "one away for a third",
        "one evicted",
        "garbage for ten rounds",
    ):
        yield replace(lanes, fault=fault)
