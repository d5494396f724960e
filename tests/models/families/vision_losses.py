"""Hand-written networks for segmentation, generation and recognition, with their losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch
import torch.nn.functional as F
from timm.loss import AsymmetricLossMultiLabel
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal
from tests.models.families.vision_patterns import FAMILY, convolutions, images, transformer
from tests.models.images import CLASSES, sgd

ENTRIES: Final[list[Entry]] = []
Batch = Mapping[str, Tensor]


class UNet(nn.Module):
    """Two downsamplings with skip connections; upsampling by transposed convolution and by interpolation."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (self._two(*sizes) for sizes in ((3, 8), (8, 16), (16, 16)))
        self.up = nn.ConvTranspose2d(16, 16, 2, 2)
        self.fourth, self.fifth = self._two(32, 8), self._two(16, 8)
        self.last = nn.Conv2d(8, 1, 1)

    @staticmethod
    def _two(before: int, after: int) -> nn.Module:
        one = nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(inplace=True)
        return nn.Sequential(*one, nn.Conv2d(after, after, 3, padding=1), nn.ReLU(inplace=True))

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        second = self.second(F.max_pool2d(first, 2))
        third = self.third(F.max_pool2d(second, 2))
        fourth = self.fourth(torch.cat([self.up(third), second], 1))
        wide = F.interpolate(fourth, scale_factor=2, mode="bilinear", align_corners=True)
        found: Tensor = self.last(self.fifth(torch.cat([wide, first], 1)))
        return found


@entry(ENTRIES, FAMILY, "U-Net, dice and binary cross-entropy")
def dice() -> Training:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch["x"])[:, 0]
        wanted = batch["mask"].float()
        p = logits.sigmoid()
        overlap = 2 * (p * wanted).sum((1, 2)) + 1
        lost = 1 - overlap / (p.sum((1, 2)) + wanted.sum((1, 2)) + 1)
        return lost.mean() + F.binary_cross_entropy_with_logits(logits, wanted)

    return Training(UNet(), objective, images(mask=integers(0, 2, ROWS, 16, 16)), sgd)


@entry(ENTRIES, FAMILY, "super-resolution, pixel shuffle, frozen features")
def finer() -> Training:
    features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3))
    network = nn.Sequential(
        *(nn.Conv2d(3, 16, 5, padding=2, padding_mode="reflect"), nn.PReLU()),
        *(nn.Conv2d(16, 12, 3, padding=1), nn.PixelShuffle(2)),
    )
    model = nn.ModuleDict({"network": network, "features": features.requires_grad_(False)})

    def objective(m: nn.Module, batch: Batch) -> Tensor:
        small = F.interpolate(batch["x"], scale_factor=0.5, mode="bicubic", antialias=False)
        made = m["network"](small)  # type: ignore[index]
        near, far = (m["features"](each) for each in (made, batch["x"]))  # type: ignore[index]
        return F.l1_loss(made, batch["x"]) + 0.1 * F.mse_loss(near, far)

    return Training(model, objective, images())


class Quantised(nn.Module):
    """VQ-VAE with straight-through gradients; the codes are moving averages in buffers."""

    codes: Tensor
    counts: Tensor
    sums: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 4, 2, 1))
        self.decode = nn.Sequential(
            nn.ConvTranspose2d(4, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2, 1)
        )
        self.register_buffer("codes", normal(10, 4))
        self.register_buffer("counts", torch.ones(10))
        self.register_buffer("sums", normal(10, 4))

    def forward(self, x: Tensor) -> Tensor:
        z = self.encode(x)
        flat = z.permute(0, 2, 3, 1).reshape(-1, 4)
        nearest = torch.cdist(flat, self.codes).argmin(1)
        code = self.codes[nearest].view(len(x), 4, 4, 4).permute(0, 3, 1, 2)
        with torch.no_grad():
            chosen = F.one_hot(nearest, 10).float()
            self.counts.mul_(0.9).add_(chosen.sum(0), alpha=0.1)
            self.sums.mul_(0.9).add_(chosen.T @ flat, alpha=0.1)
            self.codes.copy_(self.sums / (self.counts[:, None] + 1e-5))
        made = self.decode(z + (code - z).detach())
        return F.mse_loss(made, x) + 0.25 * F.mse_loss(z, code.detach())


@entry(ENTRIES, FAMILY, "VQ-VAE, codes in buffers")
def quantised() -> Training:
    return Training(Quantised(), lambda m, b: m(b["x"]), images())


class Margin(nn.Module):
    """ArcFace: adds a margin to the angle of the correct class."""

    def __init__(self) -> None:
        super().__init__()
        self.features = convolutions(8)
        self.classes = nn.Parameter(normal(CLASSES, 8))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        cosine = F.linear(F.normalize(self.features(x)), F.normalize(self.classes)).clamp(-0.999, 0.999)
        right = F.one_hot(y, CLASSES).bool()
        return F.cross_entropy(8 * torch.where(right, (cosine.acos() + 0.3).cos(), cosine), y)


@entry(ENTRIES, FAMILY, "ArcFace margin")
def margin() -> Training:
    return Training(Margin(), lambda m, b: m(b["x"], b["y"]), images(), sgd)


@entry(ENTRIES, FAMILY, "triplets, hardest of the batch")
def triplets() -> Training:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        z = model(batch["x"])
        apart = torch.cdist(z, z)
        same = batch["y"][:, None] == batch["y"]
        far = apart.masked_fill(~same, 0).amax(1)
        near = apart.masked_fill(same, 1e3).amin(1)
        return F.relu(far - near + 0.3).mean()

    data = images() | {"y": integers(0, 2, ROWS)}
    return Training(convolutions(8), objective, data, sgd, batch=8)


@entry(ENTRIES, FAMILY, "many labels, asymmetric loss")
def many_labels() -> Training:
    loss = AsymmetricLossMultiLabel()
    data = images(labels=integers(0, 2, ROWS, CLASSES))
    return Training(convolutions(), lambda m, b: loss(m(b["x"]), b["labels"]), data, sgd)


class Steered(nn.Module):
    """A spatial transformer before a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.where = nn.Sequential(nn.Conv2d(3, 4, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(144, 6))
        self.what = convolutions()

    def forward(self, x: Tensor) -> Tensor:
        steered = self.where(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        grid = F.affine_grid(steered, list(x.shape), align_corners=False)
        found: Tensor = self.what(F.grid_sample(x, grid, align_corners=False))
        return found


@entry(ENTRIES, FAMILY, "spatial transformer")
def steered() -> Training:
    return Training(Steered(), lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), images(), sgd)


@entry(ENTRIES, FAMILY, "spectral norm, hinge loss")
def spectral() -> Training:
    norm = parametrizations.spectral_norm
    model = nn.Sequential(
        *(norm(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2), norm(nn.Conv2d(8, 16, 4, 2, 1))),
        *(nn.LeakyReLU(0.2), nn.Flatten(), norm(nn.Linear(256, 1))),
    )

    def objective(m: nn.Module, batch: Batch) -> Tensor:
        real, made = m(batch["x"]), m(batch["made"])
        return F.relu(1 - real).mean() + F.relu(1 + made).mean()

    return Training(model, objective, images(made=normal(ROWS, 3, 16, 16, seed=3)))


class Rays(nn.Module):
    """NeRF: colours along rays from positional encodings, composited from front to back."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, origin: Tensor, direction: Tensor) -> Tensor:
        depth = torch.linspace(0.5, 2.0, 8)
        places = origin[:, None] + direction[:, None] * depth[:, None]
        angles = places[..., None] * 2.0 ** torch.arange(4)
        found = self.network(torch.cat([angles.sin(), angles.cos()], -1).flatten(2))
        opaque = 1 - torch.exp(-F.relu(found[..., 3]) * 0.2)
        through = torch.cumprod(1 - opaque + 1e-10, 1).roll(1, 1)
        through = torch.cat([torch.ones_like(through[:, :1]), through[:, 1:]], 1)
        return ((opaque * through)[..., None] * found[..., :3].sigmoid()).sum(1)


@entry(ENTRIES, FAMILY, "NeRF")
def rays() -> Training:
    data = {"o": normal(ROWS, 3), "d": normal(ROWS, 3, seed=2), "c": normal(ROWS, 3, seed=3).sigmoid()}
    return Training(Rays(), lambda m, b: F.mse_loss(m(b["o"], b["d"]), b["c"]), data, batch=8)


class Reader(nn.Module):
    """CRNN: reads the columns of an image as a sequence of letters."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, (2, 1), 1))
        self.recurrent = nn.LSTM(32, 8, bidirectional=True, batch_first=True)
        self.letters = nn.Linear(16, 6)

    def forward(self, x: Tensor) -> Tensor:
        columns = self.features(x).flatten(1, 2).mT
        found: Tensor = self.letters(self.recurrent(columns)[0]).log_softmax(-1)
        return found


@entry(ENTRIES, FAMILY, "CRNN, connectionist temporal classification")
def reader() -> Training:
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        found = model(batch["x"]).transpose(0, 1)
        long = torch.full((found.shape[1],), found.shape[0])
        return F.ctc_loss(found, batch["word"], long, batch["letters"], zero_infinity=True)

    data = images(word=integers(1, 6, ROWS, 3), letters=integers(1, 4, ROWS))
    return Training(Reader(), objective, data)


class Uncertain(nn.Module):
    """Predicts a class and a depth; the losses are weighted by trained variances."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.kind, self.depth = convolutions(16), nn.Linear(16, CLASSES), nn.Linear(16, 1)
        self.log_variance = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor, y: Tensor, depth: Tensor) -> Tensor:
        z = self.trunk(x)
        losses = F.cross_entropy(self.kind(z), y), F.smooth_l1_loss(self.depth(z)[:, 0], depth)
        return (torch.stack(losses) * (-self.log_variance).exp() + self.log_variance).sum()


@entry(ENTRIES, FAMILY, "heads of two tasks, weighed by their uncertainty")
def two_tasks() -> Training:
    data = images(depth=normal(ROWS))
    return Training(Uncertain(), lambda m, b: m(b["x"], b["y"], b["depth"]), data, sgd)


@entry(ENTRIES, FAMILY, "checkpointed blocks, micro-batches")
def checkpointed() -> Training:
    model = transformer()
    model.set_grad_checkpointing(True)  # type: ignore[operator]
    options = {"micro_batches": 2}
    return Training(model, lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), images(), options=options)
