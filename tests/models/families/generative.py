"""Generative models in plain torch: autoencoders, flows, score matching, GANs, pixel models."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "generative"
Batch = Mapping[str, Tensor]


def encoder(outputs: int) -> nn.Sequential:
    """Layers from [B, 1, 8, 8] to [B, C, 4, 4]."""
    return nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.SiLU(), nn.Conv2d(8, outputs, 3, 1, 1))


def decoder(inputs: int) -> nn.Sequential:
    """Layers from [B, C, 4, 4] to [B, 1, 8, 8]."""
    return nn.Sequential(nn.Conv2d(inputs, 8, 3, 1, 1), nn.SiLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1))


def of_images(model: nn.Module) -> Training:
    """The training of a model that returns its loss. The data are images of shape [1, 8, 8]."""
    return Training(model, lambda m, b: m(b["x"]), {"x": normal(ROWS, 1, 8, 8).tanh()})


class Beta(nn.Module):
    """A beta-VAE with a capacity; its loss terms are metrics."""

    def __init__(self, beta: float = 4.0) -> None:
        super().__init__()
        self.beta = beta
        self.encoder = nn.Sequential(encoder(4), nn.Flatten(), nn.Linear(64, 8))
        self.decoder = nn.Sequential(nn.Linear(4, 64), nn.Unflatten(1, (4, 4, 4)), decoder(4))

    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        mean, log_variance = self.encoder(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        fit = (self.decoder(z) - x).square().flatten(1).sum(1).mean()
        rise = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        return fit + self.beta * (rise - 1.0).abs(), {"fit": fit.detach(), "rise": rise.detach()}


@entry(ENTRIES, FAMILY, "beta-VAE")
def beta() -> Training:
    return of_images(Beta())


class Quantised(nn.Module):
    """VQ-VAE; with `moving`, its codes are buffers that follow the encoder by moving averages."""

    def __init__(self, moving: bool, codes: int = 10, width: int = 4) -> None:
        super().__init__()
        self.moving, self.encoder, self.decoder = moving, encoder(width), decoder(width)
        table = torch.randn(codes, width) / 4
        if moving:
            self.register_buffer("codes", table)
            self.register_buffer("counts", torch.ones(codes))
            self.register_buffer("sums", table.clone())
        else:
            self.codes = nn.Parameter(table)

    def forward(self, x: Tensor) -> Tensor:
        z = self.encoder(x).permute(0, 2, 3, 1)
        flat = z.reshape(-1, z.shape[-1])
        apart = flat.square().sum(1, keepdim=True) - 2 * flat @ self.codes.T + self.codes.square().sum(1)
        chosen = apart.argmin(1)
        q = F.embedding(chosen, self.codes).view_as(z)
        loss = 0.25 * F.mse_loss(z, q.detach())
        if self.moving:
            with torch.no_grad():
                hits = F.one_hot(chosen, len(self.codes)).float()
                counts, sums = self.get_buffer("counts"), self.get_buffer("sums")
                counts.mul_(0.9).add_(hits.sum(0), alpha=0.1)
                sums.mul_(0.9).add_(hits.T @ flat, alpha=0.1)
                self.codes.copy_(sums / counts.clamp_min(1e-5)[:, None])
        else:
            loss = loss + F.mse_loss(q, z.detach())
        return loss + F.mse_loss(self.decoder((z + (q - z).detach()).permute(0, 3, 1, 2)), x)


@entry(ENTRIES, FAMILY, "VQ-VAE")
def quantised() -> Training:
    return of_images(Quantised(moving=False))


@entry(ENTRIES, FAMILY, "VQ-VAE with moving codes")
def moving() -> Training:
    return of_images(Quantised(moving=True))


class Coupling(nn.Module):
    """One half of the columns scales and shifts the other half."""

    def __init__(self, width: int, swap: bool) -> None:
        super().__init__()
        self.swap = swap
        self.layers = nn.Sequential(nn.Linear(width // 2, 16), nn.ReLU(), nn.Linear(16, width))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = x.chunk(2, 1)
        if self.swap:
            first, second = second, first
        scale, move = self.layers(first).chunk(2, 1)
        scale = 2 * torch.tanh(scale)
        second = second * scale.exp() + move
        parts = (second, first) if self.swap else (first, second)
        return torch.cat(parts, 1), scale.sum(1)


@entry(ENTRIES, FAMILY, "RealNVP")
def flow() -> Training:
    class RealNVP(nn.Module):
        def __init__(self, width: int = 4) -> None:
            super().__init__()
            self.layers = nn.ModuleList(Coupling(width, bool(k % 2)) for k in range(4))

        def forward(self, x: Tensor) -> Tensor:
            total = torch.zeros_like(x[:, 0])
            for layer in self.layers:
                x, rise = layer(x)
                total = total + rise
            logs = -0.5 * (x.square() + math.log(2 * math.pi)).sum(1)
            return -(logs + total).mean()

    return Training(RealNVP(), lambda m, b: m(b["x"]), {"x": normal(ROWS, 4)})


@entry(ENTRIES, FAMILY, "masked autoregressive flow with batch norm between")
def autoregressive() -> Training:
    class Masked(nn.Module):
        def __init__(self, width: int = 4, inner: int = 12) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(width, inner), nn.Linear(inner, 2 * width)
            order = torch.arange(inner) % (width - 1)
            self.register_buffer("before", (order[:, None] >= torch.arange(width)).float())
            after = torch.arange(width).repeat(2)
            self.register_buffer("after", (after[:, None] > order).float())

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            h = F.linear(x, self.first.weight * self.get_buffer("before"), self.first.bias).relu()
            both = F.linear(h, self.second.weight * self.get_buffer("after"), self.second.bias)
            mean, scale = both.chunk(2, 1)
            return (x - mean) * (-scale).exp(), -scale.sum(1)

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(Masked() for _ in range(2))
            self.norm = nn.BatchNorm1d(4, affine=False)

        def forward(self, x: Tensor) -> Tensor:
            x, first = self.layers[0](x)
            variance = x.var(0, unbiased=False) + self.norm.eps
            x, second = self.layers[1](self.norm(x).flip(1))
            found: Tensor = (0.5 * x.square().sum(1) - first - second).mean() + 0.5 * variance.log().sum()
            return found

    return Training(Network(), lambda m, b: m(b["x"]), {"x": normal(ROWS, 4)}, batch=8)


class Noised(nn.Module):
    """Denoising score matching over a geometric series of noise levels."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("levels", torch.logspace(0, -2, 8))
        self.layers = nn.Sequential(nn.Linear(3, 32), nn.Softplus(), nn.Linear(32, 2))

    def forward(self, x: Tensor) -> Tensor:
        chosen = torch.randint(8, (len(x),), device=x.device)
        level = self.get_buffer("levels")[chosen][:, None]
        noise = torch.randn_like(x)
        score = self.layers(torch.cat([x + level * noise, level.log()], 1)) / level
        found: Tensor = 0.5 * (level * score + noise).square().sum(1).mean()
        return found


@entry(ENTRIES, FAMILY, "denoising score matching")
def score() -> Training:
    return Training(Noised(), lambda m, b: m(b["x"]), {"x": normal(ROWS, 2)})


@entry(ENTRIES, FAMILY, "sliced score matching")
def sliced() -> Training:
    def loss(m: nn.Module, b: Batch) -> Tensor:
        x = b["x"].clone().requires_grad_()
        ways = torch.randn_like(x)
        scores = m(x)
        (slope,) = torch.autograd.grad((scores * ways).sum(), x, create_graph=True)
        found: Tensor = ((slope * ways).sum(1) + 0.5 * scores.square().sum(1)).mean()
        return found

    model = nn.Sequential(nn.Linear(2, 16), nn.Softplus(), nn.Linear(16, 2))
    return Training(model, loss, {"x": normal(ROWS, 2)})


class Reversed(torch.autograd.Function):
    """The identity with a negated gradient."""

    @staticmethod
    def forward(_: object, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_: object, *gradients: Tensor) -> Tensor:
        return -gradients[0]


class Adversaries(nn.Module):
    """A generator and a discriminator."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(
            nn.Linear(4, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Unflatten(1, (4, 4, 4)), decoder(4), nn.Tanh()
        )
        self.discriminator = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(128, 1)
        )

    def made(self, count: int) -> Tensor:
        images: Tensor = self.generator(torch.randn(count, 4))
        return images


@entry(ENTRIES, FAMILY, "GAN's generator against a frozen discriminator")
def generator() -> Training:
    model = Adversaries()
    model.discriminator.requires_grad_(False)

    def loss(m: nn.Module, b: Batch) -> Tensor:
        assert isinstance(m, Adversaries)
        fakes = m.made(len(b["x"]))
        near = (fakes.mean(0) - b["x"].mean(0)).square().mean()
        return F.softplus(-m.discriminator(fakes)).mean() + near

    return Training(model, loss, {"x": normal(ROWS, 1, 8, 8).tanh()})


@entry(ENTRIES, FAMILY, "GAN of one optimiser by a reversed gradient")
def adversaries() -> Training:
    def loss(m: nn.Module, b: Batch) -> Tensor:
        assert isinstance(m, Adversaries)
        fakes = Reversed.apply(m.made(len(b["x"])))  # type: ignore[no-untyped-call]
        return F.softplus(m.discriminator(fakes)).mean() + F.softplus(-m.discriminator(b["x"])).mean()

    return Training(Adversaries(), loss, {"x": normal(ROWS, 1, 8, 8).tanh()})


class MaskedConv(nn.Conv2d):
    """A convolution over the rows above its centre, and over the pixels to the left of the centre in the
    centre's row. With `centre`, also over the centre itself.
    """

    def __init__(self, centre: bool, inputs: int, outputs: int, size: int) -> None:
        super().__init__(inputs, outputs, size, padding=size // 2)
        mask = torch.ones(size, size)
        mask[size // 2, size // 2 + centre :] = 0
        mask[size // 2 + 1 :] = 0
        self.register_buffer("mask", mask)

    def forward(self, input: Tensor) -> Tensor:
        found: Tensor = self._conv_forward(input, self.weight * self.get_buffer("mask"), self.bias)
        return found


@entry(ENTRIES, FAMILY, "PixelCNN")
def pixels() -> Training:
    levels = 4
    model = nn.Sequential(
        MaskedConv(False, 1, 8, 5), nn.ReLU(), MaskedConv(True, 8, 8, 3), nn.ReLU(), nn.Conv2d(8, levels, 1)
    )
    data = {"x": integers(0, levels, ROWS, 6, 6)}
    return Training(
        model, lambda m, b: F.cross_entropy(m(b["x"][:, None].float() / (levels - 1)), b["x"]), data
    )


class Consistency(nn.Module):
    """Flow matching taught by a moving average of the network (consistency distillation)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 2))
        self.skeleton = (copy.deepcopy(self.layers).to("meta"),)
        self.names = [name for name, _ in self.layers.named_parameters()]
        for k, p in enumerate(self.layers.parameters()):
            self.register_buffer(f"slow{k}", p.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        t = torch.rand(len(x), 1, device=x.device) * 0.9
        noise = torch.randn_like(x)
        way = self.layers(torch.cat([t * x + (1 - t) * noise, t], 1))
        slow = {name: self.get_buffer(f"slow{k}") for k, name in enumerate(self.names)}
        later = torch.cat([(t + 0.1) * x + (0.9 - t) * noise, t + 0.1], 1)
        with torch.no_grad():
            right = torch.func.functional_call(self.skeleton[0], slow, (later,))
            for k, p in enumerate(self.layers.parameters()):
                self.get_buffer(f"slow{k}").lerp_(p, 0.05)
        return F.mse_loss(way, x - noise) + F.mse_loss(way, right)


@entry(ENTRIES, FAMILY, "flow matching with consistency")
def matching() -> Training:
    return Training(Consistency(), lambda m, b: m(b["x"]), {"x": normal(ROWS, 2)})


@entry(ENTRIES, FAMILY, "a masked autoencoder of patches")
def masked() -> Training:
    class Masked(nn.Module):
        def __init__(self, width: int = 16) -> None:
            super().__init__()
            self.embed, self.places = nn.Linear(4, width), nn.Parameter(torch.randn(16, width) / 4)
            self.token = nn.Parameter(torch.zeros(width))
            self.encoder, self.decoder = (
                nn.TransformerEncoderLayer(width, 2, 32, 0.0, F.gelu, batch_first=True) for _ in range(2)
            )
            self.head = nn.Linear(width, 4)

        def forward(self, x: Tensor) -> Tensor:
            patches = F.pixel_unshuffle(x, 2).flatten(2).transpose(1, 2)
            order = torch.rand(patches.shape[:2], device=x.device).argsort(1)
            seen, back = order[:, :6], order.argsort(1)
            z = self.embed(patches) + self.places
            z = self.encoder(z.gather(1, seen[..., None].expand(-1, -1, z.shape[-1])))
            z = torch.cat([z, self.token.expand(len(x), 10, -1)], 1)
            z = z.gather(1, back[..., None].expand(-1, -1, z.shape[-1])) + self.places
            error = (self.head(self.decoder(z)) - patches).square().mean(-1)
            found: Tensor = (error * (back >= 6)).sum() / (10 * len(x))
            return found

    return of_images(Masked())
