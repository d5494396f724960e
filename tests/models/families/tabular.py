"""Metric learning, recommenders, and networks on tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal

ENTRIES: Final[list[Entry]] = []
METRIC: Final = "metric learning"
RECOMMENDER: Final = "recommenders"
TABLE: Final = "tables"
USERS, ITEMS, WIDTH, CLASSES = 13, 17, 8, 5
Batch = Mapping[str, Tensor]


def encoder(*inputs: int) -> nn.Sequential:
    """A two-layer network that embeds vectors."""
    (columns,) = inputs or (6,)
    return nn.Sequential(nn.Linear(columns, 16), nn.ReLU(), nn.Linear(16, WIDTH))


@entry(ENTRIES, METRIC, "triplets")
def triplets() -> Training:
    data = {name: normal(ROWS, 6, seed=k) for k, name in enumerate(("anchor", "near", "far"))}

    def loss(m: nn.Module, b: Batch) -> Tensor:
        return F.triplet_margin_loss(m(b["anchor"]), m(b["near"]), m(b["far"]), margin=0.5)

    return Training(encoder(), loss, data)


@entry(ENTRIES, METRIC, "the hardest triplets of a batch")
def hardest() -> Training:
    def loss(m: nn.Module, b: Batch) -> Tensor:
        z = F.normalize(m(b["x"]), dim=-1)
        apart = (2 - 2 * z @ z.T).clamp_min(1e-6).sqrt()
        same = b["y"][:, None] == b["y"]
        far = apart.masked_fill(~same, float("-inf")).amax(1)
        near = apart.masked_fill(same, 10.0).amin(1)
        return F.relu(far - near + 0.3).mean()

    return Training(encoder(), loss, {"x": normal(ROWS, 6), "y": integers(0, 3, ROWS)}, batch=8)


class ArcFace(nn.Module):
    """ArcFace: adds a margin to the angle of the correct class."""

    def __init__(self, scale: float = 16.0, margin: float = 0.3) -> None:
        super().__init__()
        self.encoder, self.scale, self.margin = encoder(), scale, margin
        self.centres = nn.Parameter(torch.randn(CLASSES, WIDTH))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        cosines = F.normalize(self.encoder(x)) @ F.normalize(self.centres).T
        angles = cosines.clamp(-1 + 1e-6, 1 - 1e-6).acos()
        right = F.one_hot(y, CLASSES).bool()
        return F.cross_entropy(self.scale * torch.where(right, (angles + self.margin).cos(), cosines), y)


@entry(ENTRIES, METRIC, "ArcFace")
def arc_face() -> Training:
    return Training(
        ArcFace(), lambda m, b: m(b["x"], b["y"]), {"x": normal(ROWS, 6), "y": integers(0, CLASSES, ROWS)}
    )


@entry(ENTRIES, METRIC, "supervised contrast")
def supervised() -> Training:
    def loss(m: nn.Module, b: Batch) -> Tensor:
        z = F.normalize(m(b["x"]), dim=-1)
        own = torch.eye(len(z), dtype=torch.bool, device=z.device)
        logs = (z @ z.T / 0.2).masked_fill(own, float("-inf")).log_softmax(-1)
        same = (b["y"][:, None] == b["y"]) & ~own
        mean = torch.where(same, logs, 0.0).sum(1) / same.sum(1).clamp_min(1)
        return -mean.mean()

    return Training(encoder(), loss, {"x": normal(ROWS, 6), "y": integers(0, 3, ROWS)}, batch=8)


@entry(ENTRIES, METRIC, "NT-Xent of two noisy views")
def views() -> Training:
    def loss(m: nn.Module, b: Batch) -> Tensor:
        x = b["x"]
        both = torch.cat([x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)])
        z = F.normalize(m(both), dim=-1)
        scores = (z @ z.T / 0.5).fill_diagonal_(float("-inf"))
        return F.cross_entropy(scores, torch.arange(len(z), device=z.device).roll(len(x)))

    return Training(encoder(), loss, {"x": normal(ROWS, 6)}, batch=6)


@entry(ENTRIES, METRIC, "Barlow twins")
def twins() -> Training:
    def loss(m: nn.Module, b: Batch) -> Tensor:
        first, second = (m(b[name]) for name in ("left", "right"))
        first, second = ((z - z.mean(0)) / (z.std(0) + 1e-4) for z in (first, second))
        across = first.T @ second / len(first)
        on = torch.diagonal(across)
        found: Tensor = (on - 1).square().sum() + 0.01 * (across.square().sum() - on.square().sum())
        return found

    return Training(encoder(), loss, {"left": normal(ROWS, 6), "right": normal(ROWS, 6, seed=3)}, batch=8)


class DLRM(nn.Module):
    """DLRM: embeds numbers and categories as vectors, and takes the product of every two of these vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, WIDTH), nn.ReLU())
        self.tables = nn.ModuleList(nn.EmbeddingBag(n, WIDTH, mode="sum") for n in (USERS, ITEMS))
        self.top = nn.Sequential(nn.Linear(WIDTH + 3, 16), nn.ReLU(), nn.Linear(16, 1))
        self.register_buffer("pairs", torch.tril_indices(3, 3, -1))

    def forward(self, numbers: Tensor, users: Tensor, items: Tensor) -> Tensor:
        x = self.numbers(numbers)
        vectors = torch.stack([x, *(table(each) for table, each in zip(self.tables, (users, items)))], 1)
        first, second = self.get_buffer("pairs")
        products = (vectors @ vectors.transpose(1, 2))[:, first, second]
        scores: Tensor = self.top(torch.cat([x, products], 1)).squeeze(-1)
        return scores


@entry(ENTRIES, RECOMMENDER, "DLRM with bags")
def dlrm() -> Training:
    data = {
        "numbers": normal(ROWS, 4),
        "users": integers(0, USERS, ROWS, 1),
        "items": integers(0, ITEMS, ROWS, 3),
        "y": integers(0, 2, ROWS).float(),
    }

    def loss(m: nn.Module, b: Batch) -> Tensor:
        return F.binary_cross_entropy_with_logits(m(b["numbers"], b["users"], b["items"]), b["y"])

    return Training(DLRM(), loss, data)


class Towers(nn.Module):
    """Two towers, for users and items; the batch's other items are the negatives."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, WIDTH), nn.Embedding(ITEMS, WIDTH)
        self.first, self.second = encoder(WIDTH), encoder(WIDTH)
        self.heat = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("frequency", torch.full((ITEMS,), 1 / ITEMS))

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        u = F.normalize(self.first(self.users(users)), dim=-1)
        v = F.normalize(self.second(self.items(items)), dim=-1)
        scores = u @ v.T * self.heat.exp() - self.get_buffer("frequency")[items].log()
        again = (items[:, None] == items).triu(1) | (items[:, None] == items).tril(-1)
        return F.cross_entropy(scores.masked_fill(again, -1e9), torch.arange(len(u), device=u.device))


def clicks() -> dict[str, Tensor]:
    """Clicks of users on items."""
    return {
        "users": integers(0, USERS, ROWS),
        "items": integers(0, ITEMS, ROWS, seed=3),
        "y": integers(0, 2, ROWS, seed=4).float(),
    }


@entry(ENTRIES, RECOMMENDER, "two towers with corrected negatives of the batch")
def towers() -> Training:
    data = clicks()
    del data["y"]
    return Training(Towers(), lambda m, b: m(b["users"], b["items"]), data, batch=6)


class Factorisation(nn.Module):
    """A factorisation machine with a parallel deep network (DeepFM)."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.vectors = nn.Embedding(USERS + ITEMS, 1), nn.Embedding(USERS + ITEMS, WIDTH)
        self.deep = nn.Sequential(nn.Linear(2 * WIDTH, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        fields = torch.stack([users, items + USERS], 1)
        v = self.vectors(fields)
        pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(-1)
        scores: Tensor = self.linear(fields).sum((1, 2)) + pairs + self.deep(v.flatten(1)).squeeze(-1)
        return scores


class NeuralFiltering(nn.Module):
    """NCF: a product of embeddings, in parallel with a deep network over other embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = (nn.ModuleList(nn.Embedding(n, WIDTH) for _ in "ab") for n in (USERS, ITEMS))
        self.deep = encoder(2 * WIDTH)
        self.head = nn.Linear(2 * WIDTH, 1)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        product = self.users[0](users) * self.items[0](items)
        deep = self.deep(torch.cat([self.users[1](users), self.items[1](items)], -1))
        scores: Tensor = self.head(torch.cat([product, deep], -1)).squeeze(-1)
        return scores


def of_clicks(model: nn.Module) -> Training:
    """The training of a model that predicts clicks."""

    def loss(m: nn.Module, b: Batch) -> Tensor:
        return F.binary_cross_entropy_with_logits(m(b["users"], b["items"]), b["y"])

    return Training(model, loss, clicks())


@entry(ENTRIES, RECOMMENDER, "DeepFM")
def machine() -> Training:
    return of_clicks(Factorisation())


@entry(ENTRIES, RECOMMENDER, "neural collaborative filtering", quick=True)
def filtering() -> Training:
    return of_clicks(NeuralFiltering())


@entry(ENTRIES, RECOMMENDER, "matrix factorisation by pairs (BPR)")
def pairs() -> Training:
    class Factors(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.users, self.items = nn.Embedding(USERS, WIDTH), nn.Embedding(ITEMS, WIDTH, max_norm=None)

        def forward(self, users: Tensor, items: Tensor) -> Tensor:
            others = torch.randint(ITEMS, items.shape, device=items.device)
            u = self.users(users)
            return -F.logsigmoid((u * (self.items(items) - self.items(others))).sum(-1)).mean()

    data = clicks()
    del data["y"]
    return Training(Factors(), lambda m, b: m(b["users"], b["items"]), data)


def of_table(model: nn.Module) -> Training:
    """The training of a classifier of table rows. Each row has six numbers and three categories."""
    data = {"x": normal(ROWS, 6), "c": integers(0, 4, ROWS, 3), "y": integers(0, CLASSES, ROWS, seed=3)}
    return Training(model, lambda m, b: F.cross_entropy(m(b["x"], b["c"]), b["y"]), data)


class Sparsemax(nn.Module):
    """Sparsemax: the output is the point on the simplex that is nearest to the input."""

    def forward(self, x: Tensor) -> Tensor:
        ordered = x.sort(-1, descending=True).values
        places = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
        inside = 1 + places * ordered > ordered.cumsum(-1)
        count = inside.sum(-1, keepdim=True)
        edge = (torch.where(inside, ordered, 0.0).sum(-1, keepdim=True) - 1) / count
        return F.relu(x - edge)


class TabNet(nn.Module):
    """TabNet with two steps; each selects columns by a sparse mask."""

    def __init__(self, steps: int = 2) -> None:
        super().__init__()
        self.norm, self.embed = nn.BatchNorm1d(9), nn.Embedding(12, 1)
        self.masks = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 9), nn.BatchNorm1d(9)) for _ in range(steps)
        )
        self.steps = nn.ModuleList(nn.Sequential(nn.Linear(9, 4 * WIDTH), nn.GLU()) for _ in range(steps + 1))
        self.sparse, self.head = Sparsemax(), nn.Linear(WIDTH, CLASSES)
        self.register_buffer("offsets", torch.tensor([0, 4, 8]))

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        x = self.norm(torch.cat([x, self.embed(c + self.get_buffer("offsets")).squeeze(-1)], 1))
        prior, total = torch.ones_like(x), x.new_zeros(len(x), WIDTH)
        a = self.steps[0](x)[:, WIDTH:]
        for k, mask in enumerate(self.masks):
            chosen = self.sparse(mask(a) * prior)
            prior = prior * (1.3 - chosen)
            d, a = self.steps[k + 1](chosen * x).split(WIDTH, 1)
            total = total + d.relu()
        scores: Tensor = self.head(total)
        return scores


@entry(ENTRIES, TABLE, "TabNet")
def tab_net() -> Training:
    return of_table(TabNet())


class Tokenised(nn.Module):
    """FT-Transformer: every column is a token."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.randn(6, width)), nn.Parameter(torch.randn(6, width))
        self.tables = nn.ModuleList(nn.Embedding(4, width) for _ in range(3))
        self.first = nn.Parameter(torch.randn(width))
        layer = nn.TransformerEncoderLayer(width, 2, 32, 0.1, F.gelu, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        numbers = x[..., None] * self.gain + self.bias
        categories = torch.stack([table(c[:, k]) for k, table in enumerate(self.tables)], 1)
        first = self.first.expand(len(x), 1, -1)
        scores: Tensor = self.head(self.layers(torch.cat([first, numbers, categories], 1))[:, 0])
        return scores


@entry(ENTRIES, TABLE, "FT-Transformer")
def tokenised() -> Training:
    return of_table(Tokenised())


class WideAndDeep(nn.Module):
    """A linear model of crossed categories, plus a deep network over numbers and embedded categories."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.tables = nn.Embedding(64, CLASSES), nn.Embedding(12, 4)
        self.deep = nn.Sequential(
            nn.Linear(6 + 12, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, CLASSES)
        )
        self.register_buffer("cross", torch.tensor([16, 4, 1]))
        self.register_buffer("offsets", torch.tensor([0, 4, 8]))

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        wide = self.wide((c * self.get_buffer("cross")).sum(1))
        each = self.tables(c + self.get_buffer("offsets")).flatten(1)
        scores: Tensor = wide + self.deep(torch.cat([x, each], 1))
        return scores


@entry(ENTRIES, TABLE, "wide and deep")
def wide() -> Training:
    return of_table(WideAndDeep())


@entry(ENTRIES, TABLE, "survival of Cox's model")
def survival() -> Training:
    def loss(m: nn.Module, b: Batch) -> Tensor:
        risk = m(b["x"]).squeeze(-1)
        later = b["time"][None] >= b["time"][:, None]
        total = risk.expand(len(risk), -1).masked_fill(~later, float("-inf")).logsumexp(-1)
        found: Tensor = -(b["died"] * (risk - total)).sum() / b["died"].sum().clamp_min(1.0)
        return found

    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    data = {
        "x": normal(ROWS, 6),
        "time": normal(ROWS, seed=3).exp(),
        "died": integers(0, 2, ROWS).float(),
    }
    return Training(model, loss, data, batch=8)
