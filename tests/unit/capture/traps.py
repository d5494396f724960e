"""Training code whose next step is not the traced one, or only seems so: state in Python, clocks, files, random
numbers, integers, indices, memory. Each trap says whether `capture` refuses it, and why, or computes what torch does.
"""

from __future__ import annotations

import itertools
import os
import random
import secrets
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocol.capture import Objective
from tests.unit.capture.steps import DATASET, cross_entropy

Batch = Mapping[str, Tensor]
Made = tuple[nn.Module, Objective]
Maker = Callable[[], Made]


@dataclass(frozen=True)
class Trap:
    """`make` gives model and objective. `refusal` is a pattern of the error, None where the step equals torch's."""

    name: str
    make: Callable[[], Made]
    refusal: str | None
    dataset: Mapping[str, Tensor]


TRAPS: list[Trap] = []


def trap(
    refusal: str | None, dataset: Mapping[str, Tensor] = DATASET
) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """Register what makes a trap."""

    def register(make: Maker) -> Maker:
        TRAPS.append(Trap(make.__name__, make, refusal, dataset))
        return make

    return register


def weighted(factor: Callable[[], float]) -> Made:
    """A classifier whose loss is multiplied by a Python number."""
    return nn.Linear(8, 3), lambda model, batch: cross_entropy(model, batch) * factor()


class Around(nn.Module):
    """A linear layer; subclasses change its input."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)

    def before(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.out(self.before(x))
        return result


# ---------------------------------------------------------------- numbers that Python counts


@trap(r"calls changes from 1 to 2")
def a_counter_in_a_closure() -> Made:
    calls = 0

    def factor() -> float:
        nonlocal calls
        calls += 1
        return min(1.0, calls / 10)

    return weighted(factor)


@trap(r"changes from 1 to 2")
def a_counter_that_acts_much_later() -> Made:
    calls = [0]

    def factor() -> float:
        calls[0] += 1
        return 1.0 if calls[0] < 1_000 else 0.5

    return weighted(factor)


@trap(r"\['step'\] changes")
def a_counter_in_a_dict() -> Made:
    kept = {"step": 0}

    def factor() -> float:
        kept["step"] += 1
        return float(kept["step"])

    return weighted(factor)


@trap(r"len\(.*seen.*\) changes")
def the_length_of_a_list() -> Made:
    seen: list[None] = []

    def factor() -> float:
        seen.append(None)
        return 1.0 / len(seen)

    return weighted(factor)


@trap(r"len\(.*recent.*\) changes")
def the_length_of_a_deque() -> Made:
    recent: deque[int] = deque(maxlen=5)

    def factor() -> float:
        recent.append(1)
        return float(len(recent))

    return weighted(factor)


@trap(r"seen changes|len\(.*seen.*\) changes")
def a_set_that_grows() -> Made:
    seen: set[int] = set()

    def factor() -> float:
        seen.add(len(seen))
        return float(len(seen))

    return weighted(factor)


GLOBAL_CALLS = 0


@trap(r"GLOBAL_CALLS changes")
def a_global_counter() -> Made:
    def factor() -> float:
        global GLOBAL_CALLS
        GLOBAL_CALLS += 1
        return float(GLOBAL_CALLS)

    return weighted(factor)


@trap(r"'calls'\] changes")
def a_counter_on_a_function() -> Made:
    def factor() -> float:
        factor.calls += 1  # type: ignore[attr-defined]
        return float(factor.calls)  # type: ignore[attr-defined]

    factor.calls = 0  # type: ignore[attr-defined]
    return weighted(factor)


@trap(r"defaults of .* changes")
def a_counter_in_a_default_argument() -> Made:
    def factor(kept: list[int] = [0]) -> float:  # noqa: B006 - the trap
        kept[0] += 1
        return float(kept[0])

    return weighted(factor)


@trap(r"steps changes from 1 to 2")
def a_counter_on_a_module() -> Made:
    class Counting(Around):
        steps = 0

        def before(self, x: Tensor) -> Tensor:
            self.steps += 1
            return x * self.steps

    return Counting(), cross_entropy


@trap(r"Shared\.steps changes")
def a_counter_on_a_class() -> Made:
    class Shared(Around):
        steps = 0

        def before(self, x: Tensor) -> Tensor:
            Shared.steps += 1
            return x * Shared.steps

    return Shared(), cross_entropy


class Annealing:
    """A plain object that steps on."""

    def __init__(self) -> None:
        self.progress = 0.0

    def __call__(self) -> float:
        self.progress += 0.1
        return self.progress


@trap(r"progress changes")
def a_counter_in_an_object() -> Made:
    return weighted(Annealing())


@trap(r"progress changes")
def a_counter_behind_a_bound_method() -> Made:
    return weighted(Annealing().__call__)


@trap(r"progress changes")
def a_counter_behind_a_partial() -> Made:
    annealing = Annealing()
    return nn.Linear(8, 3), partial(
        lambda factor, model, batch: cross_entropy(model, batch) * factor(), annealing
    )


@trap(r"counted changes")
def an_endless_count() -> Made:
    counted = itertools.count(1)
    return weighted(lambda: float(next(counted)))


@trap(r"values changes|takes .* the first time")
def a_generator() -> Made:
    def ramp() -> Iterator[float]:
        level = 0.0
        while True:
            level += 0.1
            yield level

    values = ramp()
    return weighted(lambda: next(values))


@trap(r"level changes")
def a_numpy_array_that_counts() -> Made:
    level = np.zeros(1)

    def factor() -> float:
        level[0] += 1
        return float(level[0])

    return weighted(factor)


@trap(r"phase changes")
def a_phase_that_alternates() -> Made:
    class Alternating(Around):
        phase = "even"

        def before(self, x: Tensor) -> Tensor:
            self.phase = "odd" if self.phase == "even" else "even"
            return x if self.phase == "odd" else -x

    return Alternating(), cross_entropy


@trap(r"not the same every time|initialised changes")
def a_flag_that_is_set_once() -> Made:
    class Initialised(Around):
        initialised = False

        def before(self, x: Tensor) -> Tensor:
            if not self.initialised:
                self.initialised = True
                return x * 2
            return x

    return Initialised(), cross_entropy


@trap(r"not the same every time")
def a_model_that_is_switched_over() -> Made:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3))

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        loss = cross_entropy(model, batch)
        model.eval()
        return loss

    return model, objective


@trap(r"calls\[0\] changes")
def a_hook_that_counts() -> Made:
    model, calls = nn.Linear(8, 3), [0]

    def hook(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        calls[0] += 1
        return output * calls[0]

    model.register_forward_hook(hook)
    return model, cross_entropy


@trap(r"calls\[0\] changes")
def a_gradient_that_counts() -> Made:
    calls = [0]

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: object, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(_ctx: object, gradient: Tensor) -> Tensor:
            calls[0] += 1
            return gradient * calls[0]

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        return F.cross_entropy(Scaled.apply(model(batch["x"])), batch["y"])  # type: ignore[no-untyped-call]

    return nn.Linear(8, 3), objective


# ---------------------------------------------------------------- what Python keeps and may keep


@trap(None)
def a_cache_that_is_filled_once() -> Made:
    class Cached(Around):
        def __init__(self) -> None:
            super().__init__()
            self.mask: Tensor | None = None

        def before(self, x: Tensor) -> Tensor:
            if self.mask is None:
                self.mask = torch.ones(8, 8).tril()[4]
            return x * self.mask

    return Cached(), cross_entropy


@trap(None)
def a_cache_in_a_dict() -> Made:
    kept: dict[int, Tensor] = {}

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        size = batch["x"].shape[1]
        if size not in kept:
            kept[size] = torch.linspace(0.5, 1.5, size) if size < 0 else torch.arange(size) / size
        return F.cross_entropy(model(batch["x"] * kept[size]), batch["y"])

    return nn.Linear(8, 3), objective


@trap(None)
def a_cached_function() -> Made:
    @lru_cache
    def scale(size: int) -> float:
        return 1.0 / (1 + size)

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        return cross_entropy(model, batch) * scale(batch["x"].shape[1])

    return nn.Linear(8, 3), objective


@trap(None)
def a_constant_of_the_closure() -> Made:
    smoothing = 0.1
    return nn.Linear(8, 3), lambda model, batch: F.cross_entropy(
        model(batch["x"]), batch["y"], label_smoothing=smoothing
    )


@trap(None)
def a_counter_that_is_a_buffer() -> Made:
    class Counted(Around):
        steps: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.zeros(()))

        def before(self, x: Tensor) -> Tensor:
            self.steps += 1
            return x * self.steps

    return Counted(), cross_entropy


# ---------------------------------------------------------------- random numbers, clocks, files


@trap(r"Python's random numbers|takes .* the first time")
def pythons_random_numbers() -> Made:
    return weighted(random.random)


@trap(r"rng changes|takes .* the first time")
def an_own_generator_of_python() -> Made:
    rng = random.Random(0)
    return weighted(lambda: rng.random())


@trap(r"NumPy's random numbers|takes .* the first time")
def numpys_random_numbers() -> Made:
    return weighted(lambda: float(np.random.rand()))


@trap(r"rng changes|takes .* the first time")
def an_own_generator_of_numpy() -> Made:
    rng = np.random.default_rng(0)
    return weighted(lambda: float(rng.uniform()))


@trap(r"random numbers")
def a_random_decision_that_hardly_ever_matters() -> Made:
    return weighted(lambda: 1.0 if random.random() < 2.0 else 0.5)


@trap(r"aten\.rand")
def torchs_random_numbers() -> Made:
    return nn.Linear(8, 3), lambda model, batch: cross_entropy(model, batch) * torch.rand(())


@trap(r"takes .* the first time")
def the_systems_random_numbers() -> Made:
    return weighted(lambda: 1.0 + secrets.randbelow(1 << 30) / (1 << 30))


@trap(r"takes .* the first time")
def bytes_of_the_system() -> Made:
    return weighted(lambda: 1.0 + int.from_bytes(os.urandom(4), "little") / 2**32)


@trap(r"takes .* the first time")
def a_new_name() -> Made:
    return weighted(lambda: 1.0 + (uuid.uuid4().int % 10**9) / 10**9)


@trap(r"takes .* the first time|asks for the time")
def the_time() -> Made:
    return weighted(lambda: time.time() / 1e9)


@trap(r"asks for the time")
def a_time_that_matters_later() -> Made:
    start = time.monotonic()
    return weighted(lambda: 1.0 if time.monotonic() < start + 3_600 else 0.5)


@trap(r"asks for the time")
def the_hour_of_the_day() -> Made:
    return weighted(lambda: 1.0 if datetime.now(UTC).year < 3_000 else 0.5)


@trap(r"takes .* the first time")
def a_counter_in_a_file() -> Made:
    path = Path(tempfile.mkdtemp()) / "calls"

    def factor() -> float:
        calls = int(path.read_text()) + 1 if path.exists() else 1
        path.write_text(str(calls))
        return float(calls)

    return weighted(factor)


@trap(r"takes .* the first time")
def a_counter_in_the_environment() -> Made:
    os.environ.pop("ASSAY_TRAP", None)

    def factor() -> float:
        os.environ["ASSAY_TRAP"] = str(int(os.environ.get("ASSAY_TRAP", "0")) + 1)
        return float(os.environ["ASSAY_TRAP"])

    return weighted(factor)


# ---------------------------------------------------------------- integers and indices

LARGE = {**DATASET, "n": torch.arange(1, 51) * 40_000_000}
FAR = {**DATASET, "y": torch.cat([torch.zeros(49, dtype=torch.int64), torch.tensor([3])])}
NEGATIVE = {**DATASET, "y": torch.cat([torch.zeros(49, dtype=torch.int64), torch.tensor([-1])])}
IGNORED = {**DATASET, "y": torch.where(torch.arange(50) % 2 == 0, DATASET["y"], -100)}


def by_number(number: Callable[[Tensor], Tensor]) -> Made:
    """A loss weighed by what comes of each example's integer."""

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        weights = (number(batch["n"]) % 7).float() + 1
        return (F.cross_entropy(model(batch["x"]), batch["y"], reduction="none") * weights).mean()

    return nn.Linear(8, 3), objective


@trap(r"64 bits|32 bits", LARGE)
def a_product_that_needs_64_bits() -> Made:
    return by_number(lambda n: n * 31)


@trap(r"64 bits|32 bits", LARGE)
def a_sum_that_needs_64_bits() -> Made:
    return by_number(lambda n: n + n.sum())


@trap(r"64 bits|32 bits", LARGE)
def a_running_sum_that_needs_64_bits() -> Made:
    return by_number(lambda n: n.cumsum(0))


@trap(None, {**DATASET, "n": torch.arange(50)})
def a_product_that_fits() -> Made:
    return by_number(lambda n: n * 31)


@trap(r"row 49.*3|y.*row 49", FAR)
def a_label_out_of_range() -> Made:
    return nn.Linear(8, 3), cross_entropy


@trap(r"row 49", NEGATIVE)
def a_negative_label() -> Made:
    return nn.Linear(8, 3), cross_entropy


@trap(None, IGNORED)
def labels_that_are_ignored() -> Made:
    return nn.Linear(8, 3), cross_entropy


class Embedded(nn.Module):
    """Looks its examples up."""

    def __init__(self, rows: int, offset: int = 0) -> None:
        super().__init__()
        self.table, self.out, self.offset = nn.Embedding(rows, 8), nn.Linear(8, 3), offset

    def forward(self, index: Tensor) -> Tensor:
        result: Tensor = self.out(self.table(index + self.offset))
        return result


def looked_up(model: nn.Module, batch: Batch) -> Tensor:
    return F.cross_entropy(model(batch["n"]), batch["y"])


COUNTED = {**DATASET, "n": torch.arange(50)}


@trap(r"row 49", COUNTED)
def an_index_beyond_the_table() -> Made:
    return Embedded(49), looked_up


@trap(r"row 48|row 49", COUNTED)
def an_index_that_is_shifted_beyond_the_table() -> Made:
    return Embedded(50, 2), looked_up


@trap(r"row 0", COUNTED)
def an_index_that_is_shifted_below_the_table() -> Made:
    return Embedded(50, -1), looked_up


@trap(r"row 49", COUNTED)
def a_gather_beyond_the_rows() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        wide = F.pad(model(batch["x"]), (0, 46))
        return -wide.log_softmax(1).gather(1, batch["n"][:, None]).mean()

    return nn.Linear(8, 3), objective


@trap(None, COUNTED)
def indices_in_range() -> Made:
    return Embedded(50), looked_up


@trap(r"row 49.*scatter.*49; torch allows 0 to 48", COUNTED)
def a_scatter_beyond_the_row() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        logits = F.pad(model(batch["x"]), (0, 46))
        return logits.scatter(1, batch["n"][:, None], 0.0).logsumexp(1).mean()

    return nn.Linear(8, 3), objective


@trap(r"row 49.*index_put.*49; torch allows -49 to 48", COUNTED)
def a_write_beyond_the_table() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        table = model(batch["x"]).new_zeros(49, 3)
        loss: Tensor = table.index_put((batch["n"],), model(batch["x"]), accumulate=True).square().mean()
        return loss

    return nn.Linear(8, 3), objective


@trap(r"row 49.*one_hot the index 3; torch allows 0 to 2\n", FAR)
def too_few_classes_for_a_one_hot() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        loss: Tensor = (F.one_hot(batch["y"], 3) * model(batch["x"]).log_softmax(1)).mean()
        return loss

    return nn.Linear(8, 3), objective


def comparing(batch: Batch) -> Tensor:
    """What `one_hot` does, in Python, where no label is out of range."""
    return (batch["y"].unsqueeze(-1) == torch.arange(3)).long()


@trap(None, FAR)
def a_comparison_with_all_classes() -> Made:
    return nn.Linear(8, 3), lambda model, batch: (comparing(batch) * model(batch["x"]).log_softmax(1)).mean()


@trap(r"row 1 .*-100; torch allows 0 to 2, and -1", IGNORED)
def labels_that_another_label_ignores() -> Made:
    return nn.Linear(8, 3), lambda model, batch: F.cross_entropy(
        model(batch["x"]), batch["y"], ignore_index=-1
    )


@trap(None, NEGATIVE)
def a_negative_label_that_is_ignored() -> Made:
    return nn.Linear(8, 3), lambda model, batch: F.cross_entropy(
        model(batch["x"]), batch["y"], ignore_index=-1
    )


@trap(None, COUNTED)
def an_index_from_the_end() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        weights = torch.arange(1, 26)[batch["n"] - 25] + torch.arange(1, 51)[-1 - batch["n"]]
        return (F.cross_entropy(model(batch["x"]), batch["y"], reduction="none") * weights).mean()

    return nn.Linear(8, 3), objective


@trap(r"row 0 .*gather.*-1; torch allows 0 to 2", COUNTED)
def a_gather_from_the_end() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        loss: Tensor = model(batch["x"]).gather(1, (batch["n"] % 3 - 1)[:, None]).square().mean()
        return loss

    return nn.Linear(8, 3), objective


@trap(r"may give .* any index from -49 to 49; torch allows 0 to 49", COUNTED)
def an_index_that_rows_make_together() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        return F.cross_entropy(model(batch["n"] - batch["n"].flip(0)), batch["y"])

    return Embedded(50), objective


@trap(r"row 41 .*-2147483649.*32 bits", {**DATASET, "n": 2**31 - 50 + torch.arange(50)})
def a_difference_below_32_bits() -> Made:
    return by_number(lambda n: -10 - n)


@trap(r"row 4 .*lshift.*2147483648.*32 bits", COUNTED)
def a_shift_that_needs_64_bits() -> Made:
    return by_number(lambda n: n << 29)


@trap(r"row 1 .*mul.*4244897800", LARGE)
def a_quotient_times_a_number() -> Made:
    return by_number(lambda n: n // 49 * 2_600)


@trap(None, LARGE)
def a_hash_that_fits() -> Made:
    return by_number(lambda n: (((n // 49 ^ n >> 7) & 0xFFFF) * 31 + -n // 3 % 1000) % 65_537)


@trap(r"buffer that the step writes may give .*embedding.* 0 to 3; torch allows 0 to 2")
def a_schedule_that_is_too_short() -> Made:
    class Scheduled(Around):
        steps: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(3, 8)
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

        def before(self, x: Tensor) -> Tensor:
            self.steps += 1
            result: Tensor = x * self.table(self.steps - 1)
            return result

    return Scheduled(), cross_entropy


@trap(r"buffer that the step writes may give .*add.* to 2147483649, int64 beyond 32 bits")
def a_counter_that_leaves_32_bits() -> Made:
    class Counted(Around):
        steps: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.tensor(2**31 - 3))

        def before(self, x: Tensor) -> Tensor:
            self.steps += 1
            return x

    return Counted(), cross_entropy


# ---------------------------------------------------------------- memory


@trap(None)
def a_write_through_a_view() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        x = batch["x"].clone()
        x[:, 2:4].T.mul_(3.0)
        x.view(-1)[5:9] = 0.5
        return F.cross_entropy(model(x), batch["y"])

    return nn.Linear(8, 3), objective


@trap(r"writes into batch tensor")
def a_write_into_the_batch() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        batch["x"].mul_(2)
        return cross_entropy(model, batch)

    return nn.Linear(8, 3), objective


@trap(r"writes into parameter")
def a_write_into_a_parameter() -> Made:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        with torch.no_grad():
            next(model.parameters()).clamp_(-0.1, 0.1)
        return cross_entropy(model, batch)

    return nn.Linear(8, 3), objective


@trap(None)
def a_buffer_written_through_its_view() -> Made:
    class Recording(Around):
        kept: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.zeros(4, 8))

        def before(self, x: Tensor) -> Tensor:
            view = self.kept[1:3]
            view.copy_(x[:2].detach())
            return x + self.kept.mean(0)

    return Recording(), cross_entropy


@trap(None)
def a_view_that_is_returned() -> Made:
    def objective(model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        logits = model(batch["x"])
        losses = torch.stack([F.cross_entropy(logits, batch["y"]), logits.square().mean()])
        return losses[0], {"size": losses[1]}

    return nn.Linear(8, 3), objective


@trap(r"outside the model and the batch")
def a_tensor_of_the_closure() -> Made:
    kept = torch.ones(8)
    return nn.Linear(8, 3), lambda model, batch: F.cross_entropy(model(batch["x"] * kept), batch["y"])


@trap(r"depends? on the data")
def a_default_that_depends_on_the_data() -> Made:
    def objective(model: nn.Module, batch: Batch, classes: int | None = None) -> Tensor:
        count = int(batch["y"].max()) + 1 if classes is None else classes
        return cross_entropy(model, batch) / count

    return nn.Linear(8, 3), objective


@trap(None)
def a_size_of_the_batch() -> Made:
    return nn.Linear(
        8, 3
    ), lambda model, batch: F.cross_entropy(model(batch["x"]), batch["y"], reduction="sum") / len(batch["x"])


@trap(None)
def a_parameter_in_two_places() -> Made:
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 3))
    model[2].weight = model[0].weight
    return model, cross_entropy
