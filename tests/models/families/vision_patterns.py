"""Vision training beyond a plain classifier: augmentation, pairs of views, teachers, other losses."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import timm
import torch
import torch.nn.functional as F
from timm.loss import SoftTargetCrossEntropy
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal
from tests.models.images import CLASSES, sgd

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "vision patterns"
Batch = Mapping[str, Tensor]


def images(size: int = 16, **others: Tensor) -> dict[str, Tensor]:
    """Labelled square images with sides of `size` pixels, and `others`."""
    return {"x": normal(ROWS, 3, size, size), "y": integers(0, CLASSES, ROWS), **others}


def convolutions(outputs: int = CLASSES) -> nn.Sequential:
    """A small network with batch norm, for images of 16 x 16 pixels."""
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, outputs)),
    )


def transformer(**options: Any) -> nn.Module:
    """A small timm ViT for images of 16 x 16 pixels."""
    sizes = {"img_size": 16, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 2}
    return timm.models.VisionTransformer(num_classes=CLASSES, **sizes | options)


@entry(ENTRIES, FAMILY, "mixup in the step")
def mixup() -> Training:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        weight = torch.rand(())
        order = torch.randperm(len(batch["x"]))
        logits = model(weight * batch["x"] + (1 - weight) * batch["x"][order])
        first, second = F.cross_entropy(logits, batch["y"]), F.cross_entropy(logits, batch["y"][order])
        return weight * first + (1 - weight) * second

    return Training(convolutions(), objective, images(), sgd)


@entry(ENTRIES, FAMILY, "cutmix in the step")
def cutmix() -> Training:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        x, size = batch["x"], batch["x"].shape[-1]
        half = (1 - torch.rand(())).sqrt() * size / 2
        places = torch.arange(size)
        row, column = ((places - torch.rand(()) * size).abs() < half for _ in range(2))
        box = row[:, None] & column
        order = torch.randperm(len(x))
        weight = 1 - box.float().mean()
        logits = model(torch.where(box, x[order], x))
        first, second = F.cross_entropy(logits, batch["y"]), F.cross_entropy(logits, batch["y"][order])
        return weight * first + (1 - weight) * second

    return Training(convolutions(), objective, images(), sgd)


@entry(ENTRIES, FAMILY, "soft targets of mixup in the data set")
def soft_targets() -> Training:
    targets = normal(ROWS, CLASSES).softmax(1)
    loss = SoftTargetCrossEntropy()
    return Training(transformer(), lambda m, b: loss(m(b["x"]), b["soft"]), images(soft=targets))


@entry(ENTRIES, FAMILY, "drop path, label smoothing, gradient clipping")
def regularised() -> Training:
    model = transformer(drop_path_rate=0.2, drop_rate=0.1, init_values=1e-4)

    def objective(m: nn.Module, batch: Batch) -> Tensor:
        return F.cross_entropy(m(batch["x"]), batch["y"], label_smoothing=0.1)

    return Training(model, objective, images(), options={"clip_norm": 1.0})


@entry(ENTRIES, FAMILY, "flips, crops and erasing in the step")
def augmented() -> Training:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        x = batch["x"]
        n, _, size, _ = x.shape
        flipped = torch.where((torch.rand(n) < 0.5)[:, None, None, None], x.flip(-1), x)
        zoom, shift = 0.6 + 0.4 * torch.rand(n), torch.rand(n, 2) - 0.5
        matrix = torch.diag_embed(torch.stack([zoom, zoom], 1))
        grid = F.affine_grid(torch.cat([matrix, shift[..., None]], 2), [n, 3, size, size], False)
        cropped = F.grid_sample(flipped, grid, padding_mode="reflection", align_corners=False)
        corner = torch.randint(0, size - 4, (n, 2, 1))
        inside = (torch.arange(size) >= corner) & (torch.arange(size) < corner + 4)
        erased = cropped.masked_fill((inside[:, 0, :, None] & inside[:, 1, None])[:, None], 0.0)
        return F.cross_entropy(model(erased), batch["y"])

    return Training(convolutions(), objective, images(), sgd)


@entry(ENTRIES, FAMILY, "SimCLR, pairs of views")
def contrastive() -> Training:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        n = len(batch["x"])
        z = F.normalize(model(torch.cat([batch["x"], batch["other"]])), dim=1)
        alike = (z @ z.T / 0.5).masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
        return F.cross_entropy(alike, torch.arange(2 * n).roll(n))

    data = {"x": normal(ROWS, 3, 16, 16), "other": normal(ROWS, 3, 16, 16, seed=3)}
    return Training(convolutions(8), objective, data, sgd)


@entry(ENTRIES, FAMILY, "Barlow Twins")
def redundancy() -> Training:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        first, second = (model(batch[name]) for name in ("x", "other"))
        first, second = ((z - z.mean(0)) / (z.std(0) + 1e-5) for z in (first, second))
        product = first.T @ second / len(first)
        apart = product - torch.eye(len(product))
        diagonal = torch.eye(len(product), dtype=torch.bool)
        return torch.where(diagonal, apart**2, 0.01 * apart**2).sum()

    data = {"x": normal(ROWS, 3, 16, 16), "other": normal(ROWS, 3, 16, 16, seed=3)}
    return Training(convolutions(8), objective, data, sgd, batch=8)


class Momentum(nn.Module):
    """MoCo: a slow copy whose parameters are buffers, and a queue of its keys."""

    queue: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.fast = convolutions(8)
        self.slow = _frozen(self.fast)
        self.register_buffer("queue", F.normalize(normal(16, 8), dim=1))

    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        with torch.no_grad():
            _follow(self.slow, self.fast, 0.99)
            keys = F.normalize(self.slow(other), dim=1)
        queries = F.normalize(self.fast(x), dim=1)
        logits = torch.cat([(queries * keys).sum(1, keepdim=True), queries @ self.queue.clone().T], 1)
        self.queue.copy_(torch.cat([keys, self.queue[: -len(keys)]]))
        return F.cross_entropy(logits / 0.2, torch.zeros(len(x), dtype=torch.long))


def _frozen(model: nn.Module) -> nn.Module:
    """A copy in which buffers take the place of parameters, so that no optimiser trains it."""
    found = copy.deepcopy(model)
    for module in found.modules():
        for name, p in list(module._parameters.items()):
            if p is not None:
                del module._parameters[name]
                module.register_buffer(name, p.detach())
    return found


def _follow(slow: nn.Module, fast: nn.Module, rate: float) -> None:
    """Move the buffers of a `_frozen` copy towards the original's parameters."""
    buffers = dict(slow.named_buffers())
    for name, p in fast.named_parameters():
        buffers[name].mul_(rate).add_(p.detach(), alpha=1 - rate)


@entry(ENTRIES, FAMILY, "MoCo, momentum encoder and queue in buffers")
def momentum() -> Training:
    data = {"x": normal(ROWS, 3, 16, 16), "other": normal(ROWS, 3, 16, 16, seed=3)}
    return Training(Momentum(), lambda m, b: m(b["x"], b["other"]), data, sgd)


class Centred(nn.Module):
    """DINO: a student follows the centred output of its moving average."""

    centre: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Sequential(transformer(), nn.GELU(), nn.Linear(CLASSES, 12))
        self.teacher = _frozen(self.student)
        self.register_buffer("centre", torch.zeros(12))

    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        found = torch.stack([self.student(x), self.student(other)]).div(0.1).log_softmax(-1)
        with torch.no_grad():
            taught = torch.stack([self.teacher(other), self.teacher(x)])
            wanted = (taught - self.centre).div(0.04).softmax(-1)
            self.centre.mul_(0.9).add_(taught.mean((0, 1)), alpha=0.1)
            _follow(self.teacher, self.student, 0.996)
        return -(wanted * found).sum(-1).mean()


@entry(ENTRIES, FAMILY, "DINO, centre and mean teacher in buffers")
def centred() -> Training:
    data = {"x": normal(ROWS, 3, 16, 16), "other": normal(ROWS, 3, 16, 16, seed=3)}
    return Training(Centred(), lambda m, b: m(b["x"], b["other"]), data)


@entry(ENTRIES, FAMILY, "knowledge distillation, frozen teacher")
def distilled() -> Training:
    model = nn.ModuleDict({"student": convolutions(), "teacher": transformer()})
    model["teacher"].requires_grad_(False).eval()

    def objective(m: nn.Module, batch: Batch) -> Tensor:
        with torch.no_grad():
            taught = m["teacher"](batch["x"]) / 4  # type: ignore[index]
        logits = m["student"](batch["x"])  # type: ignore[index]
        soft = F.kl_div(
            (logits / 4).log_softmax(1), taught.log_softmax(1), reduction="batchmean", log_target=True
        )
        return 0.5 * F.cross_entropy(logits, batch["y"]) + 8 * soft

    def optimiser(m: nn.Module) -> torch.optim.Optimizer:
        return sgd(m["student"])  # type: ignore[index]

    return Training(model, objective, images(), optimiser)


class Masked(nn.Module):
    """MAE: a random quarter of the patches is encoded; the others are predicted from it."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Linear(48, 16)
        self.places = nn.Parameter(normal(1, 16, 16) * 0.02)
        self.encoder = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True)
        self.missing = nn.Parameter(torch.zeros(1, 1, 16))
        self.pixels = nn.Linear(16, 48)

    def forward(self, x: Tensor) -> Tensor:
        patches = F.unfold(x, 4, stride=4).mT
        n, count, _ = patches.shape
        order = torch.rand(n, count).argsort(1)
        back, kept = order.argsort(1), order[:, : count // 4]
        tokens = self.patch(patches) + self.places
        seen = self.encoder(tokens.gather(1, kept[..., None].expand(-1, -1, 16)))
        mixed = torch.cat([seen, self.missing.expand(n, count - count // 4, -1)], 1)
        restored = mixed.gather(1, back[..., None].expand(-1, -1, 16)) + self.places
        wanted = (patches - patches.mean(-1, keepdim=True)) / (patches.var(-1, keepdim=True) + 1e-6).sqrt()
        errors = (self.pixels(self.decoder(restored)) - wanted).square().mean(-1)
        hidden = (back >= count // 4).float()
        return (errors * hidden).sum() / hidden.sum()


@entry(ENTRIES, FAMILY, "MAE, masking in the step")
def masked() -> Training:
    return Training(Masked(), lambda m, b: m(b["x"]), images())
