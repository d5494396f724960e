"""Dataset integers that overflow 32 bits, and indices out of range."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.unit.capture.steps import DATASET, cross_entropy
from tests.unit.capture.traps.trap import Around, Batch, Made, trap

LARGE = {**DATASET, "n": torch.arange(1, 51) * 40_000_000}
FAR = {**DATASET, "y": torch.cat([torch.zeros(49, dtype=torch.int64), torch.tensor([3])])}
NEGATIVE = {**DATASET, "y": torch.cat([torch.zeros(49, dtype=torch.int64), torch.tensor([-1])])}
IGNORED = {**DATASET, "y": torch.where(torch.arange(50) % 2 == 0, DATASET["y"], -100)}


def by_number(number: Callable[[Tensor], Tensor]) -> Made:
    """A loss weighted by a function of each example's integer."""

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
    """Looks up its examples in an embedding."""

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
    """The one-hot form of the labels, computed by comparison. Unlike `one_hot`, this allows any label."""
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
