"""Compares exact and plain float32 steps of library models, in processor time on one thread.

The models need the packages that `make coverage-suite` installs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.measure import Row
from benchmarks.recurrent import Training, measured

ROWS, CLASSES = 64, 100
IMAGES, SIDE = 8, 96
WORDS, CONTEXT, BATCH = 2_000, 128, 8


class Classifier(nn.Module):
    """A network and its loss."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        return F.cross_entropy(self.network(batch["x"]), batch["y"])


class Masked(nn.Module):
    """A BERT and its loss on every token."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        loss: Tensor = self.network(input_ids=batch["tokens"], labels=batch["tokens"]).loss
        return loss


def rows() -> list[Row]:
    """Rows for each installed model: the ratio of the times of exact and plain steps, and the seconds of the
    model's capture.
    """
    return measured(_trainings())


def _trainings() -> Iterator[Training]:
    torch.manual_seed(0)
    if find_spec("transformers"):
        from transformers import BertConfig, BertForMaskedLM

        config = BertConfig(
            vocab_size=WORDS,
            hidden_size=128,
            num_hidden_layers=12,
            num_attention_heads=4,
            intermediate_size=512,
            max_position_embeddings=CONTEXT,
        )
        tokens = {"tokens": torch.randint(WORDS, (ROWS, CONTEXT))}
        yield Training("BERT, 12 layers of 128", Masked(BertForMaskedLM(config)), tokens, BATCH, "1.1x")
    if find_spec("torchvision"):
        from torchvision.models import efficientnet_b0, mobilenet_v3_small

        data = {"x": torch.randn(ROWS, 3, SIDE, SIDE), "y": torch.randint(CLASSES, (ROWS,))}
        what = f"{IMAGES} images of {SIDE} x {SIDE}"
        for name, make, goal in (
            ("EfficientNet-B0", efficientnet_b0, "1.6x"),
            ("MobileNet v3 small", mobilenet_v3_small, "1.8x"),
        ):
            yield Training(f"{name}, {what}", Classifier(make(num_classes=CLASSES)), data, IMAGES, goal)
