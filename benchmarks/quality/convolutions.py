"""Measures which bits convolutions need: gradient errors against float64, training against float32, and time.

Models are timm's and the ResNet-18 of `benchmarks.resnet`, with random weights, on scikit-learn's digits
enlarged to 32 x 32 with three equal colours. This needs `pip install timm torchvision`, with torchvision
built for the installed torch. Every figure is saved in build/convolutions/ once it is measured, so an
interrupted run resumes and nothing is measured twice.

Operands of 16 bits are measured too (16 x 16), although arithmetic.md allows only 13 or 20 bits for an
operand of a convolution. The figures for 16 x 16 come from a torch model whose convolutions round their
operands to 16 bits, as section 3 of arithmetic.md defines rounding. This model computes in float64 when
gradients are compared, and in float32 when it is trained. It is not timed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import resnet
from benchmarks.environment import where
from benchmarks.measure import quartiles, side_by_side
from benchmarks.quality import training
from benchmarks.quality.rounded import rounded
from benchmarks.quality.training import Subject, drawn
from examples import digits
from protocol.capture import capture
from protocol.program.step import State

FOUND = Path(__file__).parents[2] / "build" / "convolutions"
ROLES = ("convolution", "convolution_input_gradient", "convolution_weight_gradient")
TABLES: dict[str, tuple[tuple[int, int], ...]] = {
    "13 x 13, 13 x 13, 20 x 13": ((13, 13), (13, 13), (20, 13)),
    "16 x 16, 16 x 16, 16 x 16": ((16, 16), (16, 16), (16, 16)),
    "20 x 13, 20 x 13, 20 x 13": ((20, 13), (20, 13), (20, 13)),
    "20 x 20, 13 x 13, 20 x 13": ((20, 20), (13, 13), (20, 13)),
    "20 x 20, 20 x 13, 20 x 13": ((20, 20), (20, 13), (20, 13)),
    "20 x 20, 20 x 20, 20 x 20": ((20, 20), (20, 20), (20, 20)),
}
"""The bits of the forward pass, of the input's gradient and of the weight's gradient, by the name of the table."""
EMULATED = "16 x 16, 16 x 16, 16 x 16"
TIMED = ("13 x 13, 13 x 13, 20 x 13", "20 x 13, 20 x 13, 20 x 13", "20 x 20, 13 x 13, 20 x 13")
"""The tables that are timed. The first is version 1 of the table in arithmetic.md section 4, and the last is
version 2.
"""
DEFAULT = TIMED[-1]
TRAINED = ("float32", TIMED[0], EMULATED, *TIMED[1:])
BATCH, STEPS, RATE = 32, 500, 0.02
BATCHES = (1, 2)
"""Seeds of the weights and of the batches whose gradients are compared."""
MATTERS = 1e-3
"""If the norm of a tensor's gradient is below this share of the whole gradient's norm, the tensor counts in
the errors of the whole gradient, but not in the errors of single tensors. For example, if a normalisation
follows a scale, the scale's true gradient is 0 and its float32 gradient is noise.
"""


@dataclass(frozen=True)
class Network:
    """A model by its name in timm (None means `benchmarks.resnet`), and the batch size for its gradients.

    The model is trained with each of `seeds` in every arithmetic, which takes minutes per training. With the
    seeds in `more`, it is trained only in float32 and with the default bits. These further seeds are needed
    because four seeds do not average out the noise.
    """

    name: str
    model: str | None
    images: int
    seeds: tuple[int, ...] = ()
    more: tuple[int, ...] = ()

    def seeds_of(self, table: str) -> tuple[int, ...]:
        """The seeds with which the model is trained in an arithmetic of `TRAINED`."""
        return self.seeds + (self.more if table in ("float32", DEFAULT) else ())

    def make(self, seed: int) -> nn.Module:
        """The model with the initial weights of a seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if self.model is None:
                return resnet.ResNet18()
            import timm

            made: nn.Module = timm.create_model(self.model, num_classes=10)
            return made

    def subject(self) -> Subject:
        """The model with its data, optimiser and evaluation."""
        data, held_out = images()

        def evaluate(model: nn.Module) -> dict[str, float]:
            with torch.no_grad():
                logits = model(held_out["pixels"])
            found = F.cross_entropy(logits, held_out["labels"])
            right = (logits.argmax(1) == held_out["labels"]).float().mean()
            return {"held-out loss": float(found), "held-out accuracy": float(right)}

        return Subject(
            self.name,
            self.make,
            lambda model: torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4),
            digits.warm_up_and_cosine,
            resnet.objective,
            data,
            BATCH,
            evaluate,
        )


NETWORKS = (
    Network("ResNet-18", "resnet18", BATCH, (1, 2, 3, 4), tuple(range(5, 13))),
    Network("MobileNet-v3, small", "mobilenetv3_small_100", BATCH, (1, 2, 3)),
    Network("EfficientNet-B0", "efficientnet_b0", BATCH, (1,)),
    Network("EfficientNet-B0, 8 images", "efficientnet_b0", 8),
    Network("ConvNeXt, atto", "convnext_atto", BATCH, (1,)),
    Network("ResNet-18, stem of 3 x 3, 8 images", None, 8),
)


def images() -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Training and held-out digits: labels, and pixels f32 [N, 3, 32, 32] of mean 0 and deviation 1."""

    def enlarged(data: Mapping[str, Tensor]) -> dict[str, Tensor]:
        small = data["pixels"].reshape(-1, 1, 8, 8)
        large = F.interpolate(small, size=32, mode="bilinear", align_corners=False)
        return {"pixels": ((large - 0.3) / 0.35).expand(-1, 3, -1, -1).contiguous(), "labels": data["labels"]}

    first, second = digits.split()
    return enlarged(first), enlarged(second)


def measure() -> dict[str, Any]:
    """All figures. Figures that are already saved are not measured again."""
    gradients = {
        network.name: {table: _errors(network, table) for table in (*TABLES, "float32")}
        for network in NETWORKS
    }
    trained = {
        network.name: {
            table: [
                _kept(f"train {network.name} {table} {seed}", _training(network, table, seed))
                for seed in network.seeds_of(table)
            ]
            for table in TRAINED
        }
        for network in NETWORKS
        if network.seeds
    }
    times = {table: _kept(f"time {table}", partial(ratio, table)) for table in TIMED}
    return {**where(), "steps": STEPS, "gradients": gradients, "trained": trained, "times": times}


def _errors(network: Network, table: str) -> dict[str, float]:
    """For each kind of error, the largest value in any of the batches."""
    every = [
        _kept(f"gradient {network.name} {table} {seed}", partial(gradient_errors, network, table, seed))
        for seed in BATCHES
    ]
    return {name: max(one[name] for one in every) for name in every[0]}


def _training(network: Network, table: str, seed: int) -> Callable[[], dict[str, Any]]:
    def run() -> dict[str, Any]:
        subject = replace(network.subject(), bits=_bits(table))
        run = training.plain if table in ("float32", EMULATED) else training.exact
        if table == EMULATED:
            subject = replace(subject, make_model=lambda seed: rounded(network.make(seed), TABLES[table]))
        found = run(subject, seed, STEPS)
        return {"final training loss": found.final_loss, **found.held_out}

    return run


def _bits(table: str) -> dict[str, tuple[int, int]]:
    return dict(zip(ROLES, TABLES.get(table, ()), strict=False))


def _kept(name: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The saved result `name`. If there is none yet, `find` computes it, and it is saved."""
    path = FOUND / f"{name.replace(' ', '-').replace(',', '')}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        found = find()
        path.write_text(json.dumps(found) + "\n")
        print(name, found, flush=True)
    read: dict[str, Any] = json.loads(path.read_text())
    return read


def gradient_errors(network: Network, table: str, seed: int) -> dict[str, float]:
    """Errors of the first step's loss and gradients against float64 on the same batch.

    `loss` is the relative error of the loss. `gradient` is the norm of the gradient's error divided by the
    norm of the whole true gradient. `turned` is one minus the least cosine between a tensor's gradient and
    its true gradient. `norm` is the largest relative error of the norm of a tensor's gradient. `turned` and
    `norm` are taken over the tensors that are not below `MATTERS`.
    """
    subject = replace(network.subject(), batch=network.images)
    batch = drawn(subject, seed, 0)
    true_loss, true = _backward(network.make(seed).double(), batch)
    if table == "float32":
        loss, found = _backward(network.make(seed), batch)
    elif table == EMULATED:
        loss, found = _backward(rounded(network.make(seed).double(), TABLES[table]), batch)
    else:
        loss, found = _exact(network, subject, table, seed)
    whole = torch.cat([g.flatten() for g in true.values()]).norm()
    difference = torch.stack([(found[name] - g).norm() for name, g in true.items()]).norm()
    turned, norms = [0.0], [0.0]
    for name, g in true.items():
        if g.norm() >= MATTERS * whole:
            cosine = (g * found[name]).sum() / g.norm() / found[name].norm()
            turned.append(float(1 - cosine))
            norms.append(float((found[name].norm() / g.norm() - 1).abs()))
    return {
        "loss": abs(loss - true_loss) / abs(true_loss),
        "gradient": float(difference / whole),
        "turned": max(turned),
        "norm": max(norms),
    }


def _backward(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradients of plain torch in the model's dtype; the gradients are returned in float64."""
    model.train()
    dtype = next(model.parameters()).dtype
    loss = resnet.objective(model, {"pixels": batch["pixels"].to(dtype), "labels": batch["labels"]})
    loss.backward()
    return float(loss.detach()), {name: _gradient(p).double() for name, p in model.named_parameters()}


def _gradient(p: Tensor) -> Tensor:
    return torch.zeros_like(p) if p.grad is None else p.grad


def _exact(network: Network, subject: Subject, table: str, seed: int) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradients of the captured step. The gradients are read from SGD's momentum, which equals them
    after the first step.
    """
    model = network.make(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    step = capture(
        model,
        resnet.objective,
        optimizer,
        subject.training,
        batch_size=subject.batch,
        steps=1,
        bits=_bits(table),
        preflight=False,  # 13 x 13 is captured on purpose
    )
    after = step.step(step.initial_state(seed))
    gradients = {name: after[f"{name}.momentum"].double() for name, _ in model.named_parameters()}
    return float(after["metric.loss"]), gradients


def ratio(table: str, rounds: int = 7) -> dict[str, Any]:
    """The processor time of an exact step divided by that of a plain step, on one thread. Both are steps of
    `benchmarks.resnet`'s ResNet-18.

    The result has the median and the quartiles of this ratio. `make bench` measures the wall time with
    torch's default number of threads. Other work on the machine disturbs that time more.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    step, plain = resnet.captured(_bits(table)), resnet.plain_step()
    state: State = step.initial_state(seed=1)

    def exact() -> None:
        nonlocal state
        state = step.step(state)

    found = quartiles(side_by_side(exact, {"": plain}, rounds, time.process_time)[""])
    torch.set_num_threads(threads)
    return {"ratio": list(found)}
