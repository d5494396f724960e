"""The runs of the study, the most useful first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from examples.gpt import Shape
from protocol.lanes.splitting import MOST_EXPONENT

SHAPES = {
    "0.1M": Shape(layers=2, heads=2, width=64, context=32, dropout=0.0),
    "0.9M": Shape(layers=4, heads=4, width=128, context=64, dropout=0.0),
    "5M": Shape(layers=6, heads=8, width=256, context=128, dropout=0.0),
}
STEPS = 1_000
"""Inner steps of each lane, and steps of all-reduce."""
DIGITS, DIGITS_STEPS = "digits CNN", 300
"""The name of the ResNet on digits, and its number of steps."""
CURVES = "0.9M"
"""The size whose losses are recorded during training, for the comparison at equal time."""
GARBAGE = "garbage for ten rounds"
TIGHT = -5
"""A maximum exponent that is still large enough for the changes that one round of training makes. Such a
round has five steps at a rate of 0.003.
"""
MOST_RUNS, MOST_CORE_HOURS = 60, 12.0


@dataclass(frozen=True)
class Run:
    """One training. `rule` names what is exchanged, and when.

    `lanes`: after every `inner` steps, each lane sends a part of its parameters' changes in int8. Of every
    `block` changes, it sends the one with the largest magnitude. `mean` and `nesterov`: after every `inner`
    steps, each lane sends the changes of all its parameters in float32. SGD applies the mean of the lanes'
    changes, plain (`mean`) or with Nesterov momentum (`nesterov`). `alone`: there is only one lane, and
    nothing is exchanged. `all-reduce`: the gradients are exchanged after every step.
    """

    size: str
    rule: str
    width: int = 1
    inner: int = 1
    block: int = 1
    rate: float = 1.0
    decay: float = 1.0
    momentum: float = 0.0
    most_exponent: int = MOST_EXPONENT
    fault: str = ""
    seed: int = 1
    steps: int = STEPS

    def text(self) -> str:
        """The run in words, without size and seed."""
        if self.rule in ("alone", "all-reduce"):
            what = "one lane alone" if self.rule == "alone" else f"all-reduce, {self.width} machines"
            return ", ".join([what, *self._steps()])
        words = [f"{self.width} lanes, {self.inner} steps a round"]
        if self.rule == "lanes":
            words.append(f"1/{self.block}, int8" if self.block > 1 else "all, int8")
        else:
            words.append("float32 mean" if self.rule == "mean" else f"Nesterov {self.momentum:g}")
        words += [f"rate {self.rate:g}"] * (self.rate != 1) + [f"feedback times {self.decay:g}"] * (
            self.decay != 1
        )
        return ", ".join([*words, *self._steps(), *[self.fault] * bool(self.fault)])

    def _steps(self) -> list[str]:
        return [] if self.steps in (STEPS, DIGITS_STEPS) else [f"{self.steps:,} steps"]


RECOMMENDED = Run(CURVES, "lanes", width=4, inner=5, block=8)
"""The schedule that docs/lanes.md recommends, for the size whose losses are compared at equal time."""


def runs() -> list[Run]:
    """All runs, without duplicates."""
    return list(
        dict.fromkeys(
            (
                *_screen(),
                *_rates(),
                *_confirmed(1),
                *_faults(),
                *_digits(),
                *_large(),
                *_confirmed(2),
                *_confirmed(3),
            )
        )
    )


def _screen() -> Iterator[Run]:
    """The screening runs, which train the smallest model with one seed."""
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


def _rates() -> Iterator[Run]:
    """A run with an outer rate above 1, because the mean of a few differences may be too short a step."""
    yield Run("0.1M", "lanes", width=4, inner=5, rate=1.5)


def _confirmed(seed: int) -> Iterator[Run]:
    """Runs with a larger model than in the screening: one lane alone, and, for each amount of traffic, lanes
    with the settings that did best in the screening.

    Seed 1 also has a run of all-reduce and two runs with other numbers of steps: a short run of all-reduce,
    and a long run of one lane alone. The short run takes about as long as four lanes that send 1/8 of the
    parameters if links have 100 Mbit/s. The long run takes about as long as those lanes if links have 10
    Mbit/s.
    """
    alone, lanes = Run(CURVES, "alone", seed=seed), Run(CURVES, "lanes", width=4, inner=5, seed=seed)
    yield alone
    if seed == 1:
        reduced = Run(CURVES, "all-reduce", width=4, seed=seed)
        yield from (reduced, replace(reduced, steps=150), replace(alone, steps=3_000))
    yield from (replace(lanes, block=block) for block in (8, 1, 64))
    yield replace(lanes, width=8, block=8)


def _digits() -> Iterator[Run]:
    """Runs with a different kind of model and optimiser, with one seed."""
    yield Run(DIGITS, "alone", steps=DIGITS_STEPS)
    yield Run(DIGITS, "lanes", width=4, inner=5, block=8, steps=DIGITS_STEPS)


def _large() -> Iterator[Run]:
    """Runs with a larger model, with one seed."""
    yield Run("5M", "alone")
    yield Run("5M", "lanes", width=4, inner=5, block=8)


def _faults() -> Iterator[Run]:
    lanes = Run("0.1M", "lanes", width=4, inner=5, block=8)
    for fault in (
        "one late every second round",
        "one away for a third",
        "one evicted",
        GARBAGE,
    ):
        yield replace(lanes, fault=fault)
    yield replace(lanes, fault=GARBAGE, most_exponent=TIGHT)
