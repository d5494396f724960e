"""Models written in plain torch."""

from __future__ import annotations

from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal

ENTRIES: Final[list[Entry]] = []


class Autoencoder(nn.Module):
    """A convolutional variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 8))
        self.decode = nn.Sequential(
            nn.Linear(4, 8 * 16), nn.ReLU(), nn.Unflatten(1, (8, 4, 4)), nn.ConvTranspose2d(8, 1, 4, 2, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        mean, log_variance = self.encode(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        fit = F.binary_cross_entropy_with_logits(self.decode(z), x, reduction="sum")
        loss: Tensor = fit - 0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
        return loss / len(x)


@entry(ENTRIES, "torch", "variational autoencoder", quick=True)
def autoencoder() -> Training:
    return Training(Autoencoder(), lambda m, b: m(b["x"]), {"x": normal(ROWS, 1, 8, 8).sigmoid()})


@entry(ENTRIES, "torch", "transformer encoder", quick=True)
def encoder() -> Training:
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    model = nn.Sequential(
        nn.Embedding(20, 16), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 20)
    )
    data = {"tokens": integers(0, 20, ROWS, 6)}
    return Training(
        model, lambda m, b: F.cross_entropy(m(b["tokens"]).flatten(0, 1), b["tokens"].flatten()), data
    )
