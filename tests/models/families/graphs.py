"""Graph networks from torch_geometric: one graph held by the model, or batches of graphs."""

from __future__ import annotations

from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import (
    ChebConv,
    DenseGCNConv,
    DenseSAGEConv,
    EdgeConv,
    FastRGCNConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    JumpingKnowledge,
    NNConv,
    PNAConv,
    SAGEConv,
    TransformerConv,
    dense_diff_pool,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.nn.models.schnet import GaussianSmearing, InteractionBlock, ShiftedSoftplus

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "torch_geometric"
NODES, WIDTH, CLASSES, KINDS = 7, 8, 3, 2
PAIRS: Final = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 0), (0, 3), (2, 5))


def edges(loops: bool = False) -> Tensor:
    """The edges of a ring with two chords, each in both directions. The shape is [2, 18]. With `loops`, every
    node also has a self-loop, and the shape is [2, 25].
    """
    there = torch.tensor(PAIRS).T
    own = torch.arange(NODES).expand(2, -1)
    return torch.cat([there, there.flip(0), *([own] if loops else [])], 1)


class OfNodes(nn.Module):
    """Classifies those nodes of one graph that a batch names. `more` are further arguments of the
    convolutions, held as buffers."""

    def __init__(self, first: nn.Module, second: nn.Module, loops: bool, **more: Tensor) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.register_buffer("x", normal(NODES, 5))
        self.register_buffer("edges", edges(loops))
        self.names = tuple(more)
        for name, t in more.items():
            self.register_buffer(name, t)

    def forward(self, nodes: Tensor) -> Tensor:
        more = {name: self.get_buffer(name) for name in self.names}
        h = F.elu(self.first(self.x, self.edges, **more))
        scores: Tensor = self.second(h, self.edges, **more)[nodes]
        return scores


def of_nodes(first: nn.Module, second: nn.Module, loops: bool = False, **more: Tensor) -> Training:
    """The training of a classifier of nodes."""
    data = {"node": integers(0, NODES, ROWS), "y": integers(0, CLASSES, ROWS)}
    return Training(
        OfNodes(first, second, loops, **more), lambda m, b: F.cross_entropy(m(b["node"]), b["y"]), data
    )


@entry(ENTRIES, FAMILY, "GCN that adds loops in the step")
def gcn_with_loops() -> Training:
    return of_nodes(GCNConv(5, WIDTH), GCNConv(WIDTH, CLASSES))


@entry(ENTRIES, FAMILY, "GCN of a graph with loops")
def gcn() -> Training:
    return of_nodes(
        GCNConv(5, WIDTH, add_self_loops=False), GCNConv(WIDTH, CLASSES, add_self_loops=False), loops=True
    )


@entry(ENTRIES, FAMILY, "GCN normalised beforehand")
def normalised() -> Training:
    both, weights = gcn_norm(edges(loops=True), add_self_loops=False)
    assert torch.equal(both, edges(loops=True))
    return of_nodes(
        GCNConv(5, WIDTH, normalize=False),
        GCNConv(WIDTH, CLASSES, normalize=False),
        loops=True,
        edge_weight=weights,
    )


@entry(ENTRIES, FAMILY, "GAT with dropout of attention")
def gat() -> Training:
    return of_nodes(
        GATConv(5, 4, heads=2, dropout=0.2, add_self_loops=False),
        GATConv(8, CLASSES, add_self_loops=False),
        loops=True,
    )


@entry(ENTRIES, FAMILY, "GATv2 with features of edges")
def gat_of_edges() -> Training:
    return of_nodes(
        GATv2Conv(5, 4, heads=2, edge_dim=2, add_self_loops=False),
        GATv2Conv(8, CLASSES, edge_dim=2, add_self_loops=False),
        edge_attr=normal(2 * len(PAIRS), 2, seed=5),
    )


@entry(ENTRIES, FAMILY, "GraphSAGE by means")
def sage() -> Training:
    return of_nodes(SAGEConv(5, WIDTH), SAGEConv(WIDTH, CLASSES))


@entry(ENTRIES, FAMILY, "GraphSAGE by maxima")
def sage_of_maxima() -> Training:
    return of_nodes(SAGEConv(5, WIDTH, aggr="max"), SAGEConv(WIDTH, CLASSES, aggr="max"))


def layers(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))


@entry(ENTRIES, FAMILY, "GIN")
def gin() -> Training:
    return of_nodes(GINConv(layers(5, WIDTH), train_eps=True), GINConv(layers(WIDTH, CLASSES)))


@entry(ENTRIES, FAMILY, "ChebConv")
def chebyshev() -> Training:
    return of_nodes(ChebConv(5, WIDTH, 3), ChebConv(WIDTH, CLASSES, 3))


@entry(ENTRIES, FAMILY, "EdgeConv")
def edge() -> Training:
    return of_nodes(EdgeConv(layers(10, WIDTH)), EdgeConv(layers(2 * WIDTH, CLASSES)))


@entry(ENTRIES, FAMILY, "TransformerConv")
def attention() -> Training:
    return of_nodes(TransformerConv(5, 4, heads=2, beta=True), TransformerConv(8, CLASSES))


@entry(ENTRIES, FAMILY, "PNA")
def principal() -> Training:
    degrees = torch.bincount(torch.bincount(edges()[1]))
    kinds: dict[str, Any] = {
        "aggregators": ["mean", "min", "max", "std"],
        "scalers": ["identity", "amplification", "attenuation"],
        "deg": degrees,
    }
    return of_nodes(PNAConv(5, WIDTH, **kinds), PNAConv(WIDTH, CLASSES, **kinds))


@entry(ENTRIES, FAMILY, "RGCN")
def relations() -> Training:
    return of_nodes(
        FastRGCNConv(5, WIDTH, KINDS),
        FastRGCNConv(WIDTH, CLASSES, KINDS),
        edge_type=integers(0, KINDS, 2 * len(PAIRS), seed=6),
    )


@entry(ENTRIES, FAMILY, "NNConv: weights from features of edges")
def of_edges() -> Training:
    return of_nodes(
        NNConv(5, WIDTH, nn.Linear(2, 5 * WIDTH)),
        NNConv(WIDTH, CLASSES, nn.Linear(2, WIDTH * CLASSES)),
        edge_attr=normal(2 * len(PAIRS), 2, seed=5),
    )


class OfGraphs(nn.Module):
    """Classifies graphs that all have the same edges. The graphs of a batch are joined into one graph; then
    the nodes of each original graph are pooled in three ways.
    """

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(5, WIDTH), GINConv(layers(WIDTH, WIDTH))
        self.jump = JumpingKnowledge("cat")
        self.head = nn.Linear(6 * WIDTH, CLASSES)
        steps = NODES * torch.arange(batch)[:, None, None]
        self.register_buffer("edges", (edges() + steps).permute(1, 0, 2).flatten(1))
        self.register_buffer("graph", torch.arange(batch).repeat_interleave(NODES))
        self.count = batch

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x.flatten(0, 1), self.edges).relu()
        h = self.jump([first, self.second(first, self.edges).relu()])
        pools = (global_mean_pool, global_add_pool, global_max_pool)
        scores: Tensor = self.head(torch.cat([pool(h, self.graph, self.count) for pool in pools], 1))
        return scores


@entry(ENTRIES, FAMILY, "graphs side by side, pooled by mean, sum and maximum")
def pooled() -> Training:
    data = {"x": normal(ROWS, NODES, 5), "y": integers(0, CLASSES, ROWS)}
    return Training(OfGraphs(4), lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), data)


class Continuous(nn.Module):
    """SchNet's interaction on molecules of equal size, where every two atoms are neighbours."""

    def __init__(self, batch: int, atoms: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, WIDTH)
        self.spread = GaussianSmearing(0.0, 5.0, 6)
        self.block = InteractionBlock(WIDTH, 6, WIDTH, 5.0)
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), ShiftedSoftplus(), nn.Linear(WIDTH, 1))
        one = torch.cartesian_prod(torch.arange(atoms), torch.arange(atoms))
        one = one[one[:, 0] != one[:, 1]].T
        steps = atoms * torch.arange(batch)[:, None, None]
        self.register_buffer("edges", (one + steps).permute(1, 0, 2).flatten(1))

    def forward(self, kinds: Tensor, places: Tensor) -> Tensor:
        edges = self.get_buffer("edges")
        h, at = self.embed(kinds.flatten()), places.flatten(0, 1)
        apart = (at[edges[0]] - at[edges[1]]).norm(dim=-1)
        h = h + self.block(h, edges, apart, self.spread(apart))
        energies: Tensor = self.head(h).view(len(kinds), -1).sum(1)
        return energies


@entry(ENTRIES, FAMILY, "SchNet's interaction")
def schnet() -> Training:
    data = {"z": integers(1, 10, ROWS, 4), "at": normal(ROWS, 4, 3), "y": normal(ROWS, seed=3)}
    return Training(Continuous(4), lambda m, b: F.mse_loss(m(b["z"], b["at"]), b["y"]), data)


def padded() -> dict[str, Tensor]:
    """Dense graphs of 4 to `NODES` nodes, padded to `NODES`, with a class each."""
    present = torch.arange(NODES) < integers(4, NODES + 1, ROWS, 1, seed=6)
    half = (normal(ROWS, NODES, NODES, seed=7) > 0.3).float().triu(1)
    both = present[:, :, None] & present[:, None]
    return {
        "x": normal(ROWS, NODES, 5) * present[..., None],
        "adjacency": (half + half.transpose(1, 2)) * both,
        "present": present.to(torch.uint8),
        "y": integers(0, CLASSES, ROWS),
    }


class Pooling(nn.Module):
    """DiffPool: nodes are assigned to three clusters, which form a smaller graph."""

    def __init__(self) -> None:
        super().__init__()
        self.assign, self.embed = DenseGCNConv(5, 3), DenseSAGEConv(5, WIDTH)
        self.again, self.head = DenseSAGEConv(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor, adjacency: Tensor, present: Tensor, y: Tensor) -> Tensor:
        present = present.bool()
        s = self.assign(x, adjacency, present)
        h = self.embed(x, adjacency, present).relu()
        h, adjacency, link, entropy = dense_diff_pool(h, adjacency, s, present)
        h = self.again(h, adjacency).relu().mean(1)
        loss: Tensor = F.cross_entropy(self.head(h), y) + link + entropy
        return loss


@entry(ENTRIES, FAMILY, "DiffPool on dense graphs")
def diff_pool() -> Training:
    return Training(Pooling(), lambda m, b: m(b["x"], b["adjacency"], b["present"], b["y"]), padded())
