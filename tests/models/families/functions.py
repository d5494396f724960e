"""Networks on coordinates, points and sets, and networks whose forward pass solves an equation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "functions and sets"
CLASSES: Final = 3
Batch = Mapping[str, Tensor]


class RadianceField(nn.Module):
    """NeRF: points along rays, encoded by sines; their colours are composited by density."""

    def __init__(self, samples: int = 6, octaves: int = 3, width: int = 16) -> None:
        super().__init__()
        self.samples = samples
        self.register_buffer("frequencies", 2.0 ** torch.arange(octaves) * math.pi)
        self.trunk = nn.Sequential(
            nn.Linear(3 + 6 * octaves, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.density = nn.Linear(width, 1)
        self.colour = nn.Sequential(nn.Linear(width + 3, width), nn.ReLU(), nn.Linear(width, 3))

    def encoded(self, points: Tensor) -> Tensor:
        angles = (points[..., None] * self.get_buffer("frequencies")).flatten(-2)
        return torch.cat([points, angles.sin(), angles.cos()], -1)

    def forward(self, origins: Tensor, directions: Tensor) -> Tensor:
        near, far = 0.5, 2.0
        bins = torch.linspace(near, far, self.samples + 1, device=origins.device)
        jitter = torch.rand(len(origins), self.samples, device=origins.device)
        depths = bins[:-1] + (bins[1:] - bins[:-1]) * jitter
        points = origins[:, None] + directions[:, None] * depths[..., None]
        features = self.trunk(self.encoded(points))
        seen = torch.cat([features, directions[:, None].expand_as(points)], -1)
        steps = torch.cat([depths.diff(dim=1), torch.full_like(depths[:, :1], 1e10)], 1)
        alpha = 1 - torch.exp(-F.softplus(self.density(features).squeeze(-1)) * steps)
        clear = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
        found: Tensor = ((alpha * clear)[..., None] * self.colour(seen).sigmoid()).sum(1)
        return found


@entry(ENTRIES, FAMILY, "NeRF")
def nerf() -> Training:
    data = {
        "from": normal(ROWS, 3),
        "to": F.normalize(normal(ROWS, 3, seed=3), dim=-1),
        "rgb": normal(ROWS, 3, seed=4).sigmoid(),
    }
    return Training(RadianceField(), lambda m, b: F.mse_loss(m(b["from"], b["to"]), b["rgb"]), data)


class Sine(nn.Module):
    def __init__(self, inputs: int, outputs: int, first: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        bound = 1 / inputs if first else math.sqrt(6 / inputs) / 30
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(30 * self.linear(x))


@entry(ENTRIES, FAMILY, "SIREN")
def siren() -> Training:
    model = nn.Sequential(Sine(2, 16, first=True), Sine(16, 16), nn.Linear(16, 3))
    data = {"x": normal(ROWS, 2).tanh(), "y": normal(ROWS, 3, seed=3).sigmoid()}
    return Training(model, lambda m, b: F.mse_loss(m(b["x"]), b["y"]), data)


class FourierFeatures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("directions", 2 * math.pi * torch.randn(2, 8))
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        angles = x @ self.get_buffer("directions")
        colours: Tensor = self.layers(torch.cat([angles.cos(), angles.sin()], -1))
        return colours


@entry(ENTRIES, FAMILY, "random Fourier features")
def fourier() -> Training:
    data = {"x": normal(ROWS, 2).tanh(), "y": normal(ROWS, 3, seed=3).sigmoid()}
    return Training(FourierFeatures(), lambda m, b: F.mse_loss(m(b["x"]), b["y"]), data)


def points(model: nn.Module, count: int = 7) -> Training:
    """The training of a classifier of point clouds."""
    data = {"x": normal(ROWS, count, 3), "y": integers(0, CLASSES, ROWS)}
    return Training(model, lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), data)


class DeepSets(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 16))
        self.all = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.all(self.each(x).sum(1))
        return scores


@entry(ENTRIES, FAMILY, "DeepSets", quick=True)
def deep_sets() -> Training:
    return points(DeepSets())


def shared(*widths: int) -> nn.Sequential:
    """Layers applied to every point, over [B, C, N]."""
    layers = nn.Sequential()
    for width, after in pairwise(widths):
        layers += nn.Sequential(nn.Conv1d(width, after, 1), nn.BatchNorm1d(after), nn.ReLU())
    return layers


class Transform(nn.Module):
    """PointNet's learnt transform, as matrices near the identity."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.each = shared(size, 8, 16)
        self.all = nn.Linear(16, size * size)

    def forward(self, x: Tensor) -> Tensor:
        turn = self.all(self.each(x).amax(-1)).view(-1, self.size, self.size)
        found: Tensor = turn + torch.eye(self.size, device=x.device)
        return found


class PointNet(nn.Module):
    """PointNet with both transforms; the loss penalises a second transform that is not orthogonal."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Transform(3), Transform(8)
        self.each, self.more = shared(3, 8), shared(8, 16)
        self.head = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, CLASSES))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = x.transpose(1, 2)
        x = self.each(torch.bmm(self.first(x), x))
        turn = self.second(x)
        scores = self.head(self.more(torch.bmm(turn, x)).amax(-1))
        off = torch.bmm(turn, turn.transpose(1, 2)) - torch.eye(turn.shape[-1], device=x.device)
        found: Tensor = F.cross_entropy(scores, y) + 0.001 * torch.linalg.matrix_norm(off).mean()
        return found


@entry(ENTRIES, FAMILY, "PointNet with transforms")
def point_net() -> Training:
    data = {"x": normal(ROWS, 7, 3), "y": integers(0, CLASSES, ROWS)}
    return Training(PointNet(), lambda m, b: m(b["x"], b["y"]), data, batch=6)


class EdgeBlock(nn.Module):
    """A DGCNN layer over each point and its nearest neighbours."""

    def __init__(self, inputs: int, outputs: int, neighbours: int = 3) -> None:
        super().__init__()
        self.neighbours = neighbours
        self.layer = nn.Sequential(nn.Linear(2 * inputs, outputs), nn.LayerNorm(outputs), nn.LeakyReLU(0.2))

    def forward(self, x: Tensor) -> Tensor:
        distances = torch.cdist(x.detach(), x.detach())
        near = distances.topk(self.neighbours, -1, largest=False).indices
        others = x[torch.arange(len(x), device=x.device)[:, None, None], near]
        here = x[:, :, None].expand_as(others)
        found: Tensor = self.layer(torch.cat([here, others - here], -1)).amax(2)
        return found


@entry(ENTRIES, FAMILY, "DGCNN: neighbours found in every step")
def neighbours() -> Training:
    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = EdgeBlock(3, 8), EdgeBlock(8, 16)
            self.head = nn.Linear(16, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            scores: Tensor = self.head(self.second(self.first(x)).amax(1))
            return scores

    return points(Network())


class Attention(nn.Module):
    """A block of the set transformer: queries attend to a set."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, width), nn.ReLU())

    def forward(self, queries: Tensor, x: Tensor) -> Tensor:
        h = self.first(queries + self.attend(queries, x, x, need_weights=False)[0])
        y: Tensor = self.second(h + self.feed(h))
        return y


class SetTransformer(nn.Module):
    """A set transformer: induced attention blocks and pooling by attention."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Linear(3, width)
        self.inducing, self.seeds = nn.Parameter(torch.randn(4, width)), nn.Parameter(torch.randn(1, width))
        self.squeeze, self.spread, self.pool = Attention(width), Attention(width), Attention(width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        x = self.spread(x, self.squeeze(self.inducing.expand(len(x), -1, -1), x))
        scores: Tensor = self.head(self.pool(self.seeds.expand(len(x), -1, -1), x).squeeze(1))
        return scores


@entry(ENTRIES, FAMILY, "set transformer")
def set_transformer() -> Training:
    return points(SetTransformer())


class Perceiver(nn.Module):
    """Latents that attend to the input and then to each other, twice with shared weights."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(4, width) * 0.02)
        self.embed = nn.Linear(3, width)
        self.read = Attention(width)
        self.think = nn.TransformerEncoderLayer(width, 2, 32, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        z, x = self.latents.expand(len(x), -1, -1), self.embed(x)
        for _ in range(2):
            z = self.think(self.read(z, x))
        scores: Tensor = self.head(z.mean(1))
        return scores


@entry(ENTRIES, FAMILY, "Perceiver")
def perceiver() -> Training:
    return points(Perceiver())


class Mixture(nn.Module):
    """A mixture density network."""

    def __init__(self, parts: int = 4) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(1, 16), nn.Tanh())
        self.head = nn.Linear(16, 3 * parts)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        weights, means, scales = self.head(self.trunk(x)).chunk(3, -1)
        logs = torch.distributions.Normal(means, F.softplus(scales) + 1e-3).log_prob(y)
        return -torch.logsumexp(weights.log_softmax(-1) + logs, -1).mean()


@entry(ENTRIES, FAMILY, "mixture density network")
def mixture() -> Training:
    x = normal(ROWS, 1)
    return Training(Mixture(), lambda m, b: m(b["x"], b["y"]), {"x": x, "y": x.sin() + 0.1 * x**2})


def runge_kutta(slope: Callable[[Tensor, Tensor], Tensor], y: Tensor, steps: int) -> Tensor:
    """Integrate `slope` from time 0 to 1 by the classical method, in equal steps."""
    h = 1 / steps
    for k in range(steps):
        t = torch.full((), k * h, device=y.device)
        a = slope(t, y)
        b = slope(t + h / 2, y + h / 2 * a)
        c = slope(t + h / 2, y + h / 2 * b)
        d = slope(t + h, y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
    return y


class Flow(nn.Module):
    """A network that computes the slope from time and state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width + 1, 16), nn.Tanh(), nn.Linear(16, width))

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        slope: Tensor = self.layers(torch.cat([y, t.expand(len(y), 1)], -1))
        return slope


@entry(ENTRIES, FAMILY, "neural ODE by Runge and Kutta")
def ode() -> Training:
    data = {"x": normal(ROWS, 2), "y": normal(ROWS, 2, seed=3)}
    return Training(Flow(2), lambda m, b: F.mse_loss(runge_kutta(m, b["x"], 3), b["y"]), data)


class DeepEquilibrium(nn.Module):
    """A deep equilibrium model: finds a fixed point without gradients, then makes one more step with
    gradients (Jacobian-free).
    """

    def __init__(self) -> None:
        super().__init__()
        self.inject, self.again = nn.Linear(3, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inject(x)
        z = torch.zeros_like(x)
        with torch.no_grad():
            for _ in range(5):
                z = torch.tanh(self.again(z) * 0.5 + x)
        scores: Tensor = self.head(torch.tanh(self.again(z) * 0.5 + x))
        return scores


@entry(ENTRIES, FAMILY, "deep equilibrium without a Jacobian")
def equilibrium() -> Training:
    data = {"x": normal(ROWS, 3), "y": integers(0, CLASSES, ROWS)}
    return Training(DeepEquilibrium(), lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), data)


@entry(ENTRIES, FAMILY, "physics-informed network of u'' = -u")
def physics() -> Training:
    """The training of a physics-informed network for u'' = -u. The residual in its loss contains second
    derivatives from `torch.autograd.grad`.
    """

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        x = batch["x"].clone().requires_grad_()
        u = model(x)
        (first,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
        found: Tensor = (second + u).square().mean() + (model(torch.zeros_like(x)) - 1).square().mean()
        return found

    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    return Training(model, loss, {"x": normal(ROWS, 1)})
