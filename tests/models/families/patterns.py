"""Training patterns for any model: regularisation, sharing, distillation, precision, parts of torch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Beta, Categorical, Independent, Normal, kl_divergence
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "patterns"
COLUMNS, HIDDEN, CLASSES = 6, 12, 4
Batch = Mapping[str, Tensor]


def layers(*between: nn.Module) -> nn.Sequential:
    """A classifier with the given modules between its layers."""
    return nn.Sequential(nn.Linear(COLUMNS, HIDDEN), nn.ReLU(), *between, nn.Linear(HIDDEN, CLASSES))


def images(*inside: nn.Module) -> nn.Sequential:
    """A convolutional classifier."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        *inside,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


def classifier(model: nn.Module, *shape: int, **rest: Any) -> Training:
    """The training of a classifier. Its inputs have the given `shape`; without one, they are vectors."""
    data = {"x": normal(ROWS, *(shape or (COLUMNS,))), "y": integers(0, CLASSES, ROWS)}
    return Training(model, lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), data, **rest)


@entry(ENTRIES, FAMILY, "dropout of channels")
def channels() -> Training:
    return classifier(images(nn.Dropout2d(0.3)), 1, 6, 6)


@entry(ENTRIES, FAMILY, "alpha dropout after SELU")
def alpha() -> Training:
    return classifier(
        nn.Sequential(nn.Linear(COLUMNS, 12), nn.SELU(), nn.AlphaDropout(0.2), nn.Linear(12, 4))
    )


class DropPath(nn.Module):
    """A residual branch that is dropped at random, separately for each row."""

    def __init__(self, branch: nn.Module, rate: float) -> None:
        super().__init__()
        self.branch, self.rate = branch, rate

    def forward(self, x: Tensor) -> Tensor:
        kept = x.new_empty((len(x),) + (1,) * (x.dim() - 1)).bernoulli_(1 - self.rate)
        y: Tensor = x + self.branch(x) * kept / (1 - self.rate)
        return y


@entry(ENTRIES, FAMILY, "stochastic depth")
def depth() -> Training:
    return classifier(layers(DropPath(nn.Sequential(nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, HIDDEN)), 0.3)))


@entry(ENTRIES, FAMILY, "spectral norm", quick=True)
def spectral() -> Training:
    return classifier(layers(parametrizations.spectral_norm(nn.Linear(HIDDEN, HIDDEN)), nn.ReLU()))


@entry(ENTRIES, FAMILY, "weight norm of convolutions")
def weight_norm() -> Training:
    return classifier(images(parametrizations.weight_norm(nn.Conv2d(8, 8, 3, padding=1)), nn.ReLU()), 1, 6, 6)


@entry(ENTRIES, FAMILY, "orthogonal weights by Cayley's map")
def orthogonal() -> Training:
    inner = parametrizations.orthogonal(nn.Linear(6, 6), orthogonal_map="cayley", use_trivialization=False)
    return classifier(nn.Sequential(inner, nn.Tanh(), nn.Linear(6, CLASSES)))


@entry(ENTRIES, FAMILY, "gradient checkpoint with dropout")
def checkpointed() -> Training:
    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(COLUMNS, HIDDEN)
            self.block = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Dropout(0.2))
            self.head = nn.Linear(HIDDEN, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            scores: Tensor = self.head(checkpoint(self.block, self.first(x), use_reentrant=False))
            return scores

    return classifier(Network())


@entry(ENTRIES, FAMILY, "micro-batches", quick=True)
def micro() -> Training:
    return classifier(layers(), options={"micro_batches": 2})


@entry(ENTRIES, FAMILY, "gradients clipped by norm")
def clipped() -> Training:
    return classifier(layers(), options={"clip_norm": 0.1})


@entry(ENTRIES, FAMILY, "frozen backbone with batch norm in eval mode")
def frozen() -> Training:
    class Tuned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = nn.Sequential(
                nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
            )
            self.backbone.requires_grad_(False)
            self.head = nn.Linear(8, CLASSES)

        def train(self, mode: bool = True) -> Tuned:
            super().train(mode)
            self.backbone.eval()
            return self

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                x = self.backbone(x)
            scores: Tensor = self.head(x)
            return scores

    return classifier(Tuned().train(), 1, 6, 6)


@entry(ENTRIES, FAMILY, "tied embeddings")
def tied() -> Training:
    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.inner = nn.Embedding(11, 8), nn.Linear(8, 8)
            self.head = nn.Linear(8, 11, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x: Tensor) -> Tensor:
            scores: Tensor = self.head(self.inner(self.embed(x)).tanh())
            return scores

    data = {"x": integers(0, 11, ROWS), "y": integers(0, 11, ROWS, seed=3)}
    return Training(Language(), lambda m, b: F.cross_entropy(m(b["x"]), b["y"], label_smoothing=0.1), data)


@entry(ENTRIES, FAMILY, "distillation from a frozen teacher")
def distilled() -> Training:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.student = layers()
            self.teacher = nn.Sequential(nn.Linear(COLUMNS, 32), nn.ReLU(), nn.Linear(32, CLASSES))
            self.teacher.eval().requires_grad_(False)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            ours, heat = self.student(x), 3.0
            with torch.no_grad():
                right = (self.teacher(x) / heat).softmax(-1)
            soft = F.kl_div((ours / heat).log_softmax(-1), right, reduction="batchmean") * heat**2
            return 0.3 * F.cross_entropy(ours, y) + 0.7 * soft

    data = {"x": normal(ROWS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(Pair(), lambda m, b: m(b["x"], b["y"]), data)


class Averaged(nn.Module):
    """A mean teacher: the loss pulls a model towards its moving average, which the step updates."""

    def __init__(self, model: nn.Module, decay: float = 0.9) -> None:
        super().__init__()
        self.model, self.decay = model, decay
        self.average = copy.deepcopy(model).requires_grad_(False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        scores = self.model(x + 0.1)
        loss = F.cross_entropy(scores, y) + F.mse_loss(scores.softmax(-1), self.average(x).softmax(-1))
        for mean, now in zip(self.average.buffers(), self.model.parameters()):
            mean.lerp_(now.detach(), 1 - self.decay)
        return loss


def as_buffers(module: nn.Module) -> nn.Module:
    """Turn a module's parameters into buffers, so that the step can write them."""
    for part in module.modules():
        for name, p in list(part.named_parameters(recurse=False)):
            delattr(part, name)
            part.register_buffer(name, p.detach().clone())
    return module


@entry(ENTRIES, FAMILY, "moving average of weights as a mean teacher")
def averaged() -> Training:
    model = Averaged(layers())
    as_buffers(model.average)
    data = {"x": normal(ROWS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(model, lambda m, b: m(b["x"], b["y"]), data)


class FakeQuantised(nn.Module):
    """A linear layer with 8-bit weights and inputs; gradients pass straight through the rounding."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.step = nn.Parameter(torch.tensor(0.05))

    @staticmethod
    def rounded(x: Tensor) -> Tensor:
        return x + (x.round() - x).detach()

    def forward(self, x: Tensor) -> Tensor:
        x = self.rounded((x / self.step).clamp(-128, 127)) * self.step
        scale = self.linear.weight.detach().abs().amax(1, keepdim=True) / 127
        weight = self.rounded(self.linear.weight / scale) * scale
        return F.linear(x, weight, self.linear.bias)


@entry(ENTRIES, FAMILY, "quantisation-aware by a straight-through estimator")
def quantised() -> Training:
    return classifier(
        nn.Sequential(FakeQuantised(COLUMNS, HIDDEN), nn.ReLU(), FakeQuantised(HIDDEN, CLASSES))
    )


@entry(ENTRIES, FAMILY, "quantisation-aware by torch's fake quantisation")
def fake() -> Training:
    class Layer(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            weight = torch.fake_quantize_per_tensor_affine(self.weight, 0.01, 0, -128, 127)
            return F.linear(input, weight, self.bias)

    return classifier(nn.Sequential(Layer(COLUMNS, HIDDEN), nn.ReLU(), Layer(HIDDEN, CLASSES)))


class Experts(nn.Module):
    """A weighted sum of the best two of four experts for each row, with a load-balancing loss."""

    def __init__(self, experts: int = 4, best: int = 2) -> None:
        super().__init__()
        self.best = best
        self.router = nn.Linear(HIDDEN, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, HIDDEN, 16) / 4)
        self.down = nn.Parameter(torch.randn(experts, 16, HIDDEN) / 4)
        self.first, self.head = nn.Linear(COLUMNS, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = self.first(x).relu()
        chances = self.router(x).softmax(-1)
        weights, chosen = chances.topk(self.best, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        gates = torch.zeros_like(chances).scatter(-1, chosen, weights)
        inner = torch.einsum("bd,edh->beh", x, self.up).relu()
        x = x + torch.einsum("be,beh,ehd->bd", gates, inner, self.down)
        used = F.one_hot(chosen, chances.shape[-1]).float().sum(1).mean(0)
        balance = chances.shape[-1] * (used * chances.mean(0)).sum()
        found: Tensor = F.cross_entropy(self.head(x), y) + 0.01 * balance
        return found


@entry(ENTRIES, FAMILY, "sparse mixture of experts")
def experts() -> Training:
    data = {"x": normal(ROWS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(Experts(), lambda m, b: m(b["x"], b["y"]), data)


@entry(ENTRIES, FAMILY, "ensemble by torch.func and vmap")
def ensemble() -> Training:
    class Ensemble(nn.Module):
        def __init__(self, members: int = 3) -> None:
            super().__init__()
            parts = [layers() for _ in range(members)]
            self.names = [name for name, _ in parts[0].named_parameters()]
            stacked, _ = torch.func.stack_module_state(parts)
            self.weights = nn.ParameterList(stacked[name].detach() for name in self.names)
            self.skeleton = (copy.deepcopy(parts[0]).to("meta"),)

        def forward(self, x: Tensor) -> Tensor:
            def one(weights: dict[str, Tensor]) -> Tensor:
                scores: Tensor = torch.func.functional_call(self.skeleton[0], weights, (x,))
                return scores

            return torch.vmap(one)(dict(zip(self.names, self.weights)))

    def loss(model: nn.Module, b: Batch) -> Tensor:
        return F.cross_entropy(model(b["x"]).flatten(0, 1), b["y"].repeat(3))

    data = {"x": normal(ROWS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(Ensemble(), loss, data)


@entry(ENTRIES, FAMILY, "tensors contracted by einsum")
def contracted() -> Training:
    class TensorTrain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Parameter(torch.randn(4, 3, 5) / 2)
            self.second = nn.Parameter(torch.randn(5, 3, 4, 5) / 2)
            self.third = nn.Parameter(torch.randn(5, 3, CLASSES) / 2)

        def forward(self, x: Tensor) -> Tensor:
            x = x.view(-1, 3, 3, 3)
            return torch.einsum("bijk,aim,mjan,nkc->bc", x, self.first, self.second, self.third)

    return classifier(TensorTrain(), 27)


@entry(ENTRIES, FAMILY, "a Bayesian layer: normal weights and their divergence")
def bayesian() -> Training:
    class Bayesian(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean = nn.Parameter(torch.randn(CLASSES, COLUMNS) / 3)
            self.scale = nn.Parameter(torch.full((CLASSES, COLUMNS), -3.0))

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            weights = Normal(self.mean, F.softplus(self.scale))
            prior = Normal(torch.zeros_like(self.mean), torch.ones_like(self.scale))
            rise = kl_divergence(Independent(weights, 2), Independent(prior, 2))
            return F.cross_entropy(x @ weights.rsample().T, y) + rise / ROWS

    data = {"x": normal(ROWS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(Bayesian(), lambda m, b: m(b["x"], b["y"]), data)


@entry(ENTRIES, FAMILY, "likelihoods of categories and a divergence between them")
def categories() -> Training:
    def loss(model: nn.Module, b: Batch) -> Tensor:
        ours = Categorical(logits=model(b["x"]))
        even = Categorical(probs=torch.full_like(ours.logits, 1 / CLASSES))
        found: Tensor = (
            -ours.log_prob(b["y"]).mean()
            + 0.1 * kl_divergence(ours, even).mean()
            - 0.1 * ours.entropy().mean()
        )
        return found

    data = {"x": normal(ROWS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(layers(), loss, data)


@entry(ENTRIES, FAMILY, "beta regression")
def beta() -> Training:
    def loss(model: nn.Module, b: Batch) -> Tensor:
        a, c = F.softplus(model(b["x"])).add(0.1).chunk(2, -1)
        found: Tensor = -Beta(a, c).log_prob(b["y"]).mean()
        return found

    model = nn.Sequential(nn.Linear(COLUMNS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2))
    data = {"x": normal(ROWS, COLUMNS), "y": normal(ROWS, 1, seed=3).sigmoid()}
    return Training(model, loss, data)


@entry(ENTRIES, FAMILY, "mixup in the step")
def mixup() -> Training:
    def loss(model: nn.Module, b: Batch) -> Tensor:
        order = torch.randperm(len(b["x"]), device=b["x"].device)
        share = torch.rand(len(b["x"]), 1, device=b["x"].device)
        right = F.one_hot(b["y"], CLASSES).float()
        x = share * b["x"] + (1 - share) * b["x"][order]
        return F.cross_entropy(model(x), share * right + (1 - share) * right[order])

    data = {"x": normal(ROWS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(layers(), loss, data)


@entry(ENTRIES, FAMILY, "an objective that punishes the input's gradient")
def smooth() -> Training:
    def loss(model: nn.Module, b: Batch) -> Tensor:
        x = b["x"].clone().requires_grad_()
        fit = F.cross_entropy(model(x), b["y"])
        (slope,) = torch.autograd.grad(fit, x, create_graph=True)
        return fit + 0.1 * slope.square().sum()

    data = {"x": normal(ROWS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(
        nn.Sequential(nn.Linear(COLUMNS, HIDDEN), nn.Softplus(), nn.Linear(HIDDEN, 4)), loss, data
    )
