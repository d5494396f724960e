"""Entries from Hugging Face's `transformers`: models with random weights, most with their own losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from protocol.capture import Objective
from tests.models.entry import ROWS, Entry, Training, integers

Data = Callable[[], Mapping[str, Tensor]]

VOCABULARY = 61
LENGTH = 10
SIZES: Mapping[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
"""Sizes, under the names that most language models use."""
GROUPED: Mapping[str, Any] = {**SIZES, "num_key_value_heads": 2}
SPECIAL: Mapping[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
BLOCKS: Mapping[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
}
VIT: Mapping[str, Any] = {**BLOCKS, "image_size": 16, "patch_size": 4}
COUNTS: Mapping[str, Any] = {"layers": 2, "ffn_dim": 40, "attention_heads": 4}
"""Sizes of an encoder or a decoder. Users put the prefix `encoder_` or `decoder_` before each name."""
DRY: Mapping[str, Any] = {
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
"""No dropout: only a step that draws no random numbers can be compared with torch."""


def made(kind: str, config: Any, **options: Any) -> nn.Module:
    """A model of class `kind` in training mode, with random weights. `config` is a configuration, or the name
    of a configuration class that takes `options`.
    """
    import transformers

    if isinstance(config, str):
        config = getattr(transformers, config)(**options)
    model: nn.Module = getattr(transformers, kind)(config)
    return model.train()


def own_loss(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The model's own loss."""
    loss: Tensor = model(**batch).loss
    return loss


def words(length: int = LENGTH, low: int = 3, high: int = VOCABULARY) -> dict[str, Tensor]:
    """Sentences of different lengths, padded on the right, and their attention masks."""
    mask = torch.arange(length) < integers(length // 2, length + 1, ROWS, 1, seed=3)
    return {"input_ids": integers(low, high, ROWS, length) * mask, "attention_mask": mask.long()}


def next_words(length: int = LENGTH) -> dict[str, Tensor]:
    """Sentences whose labels are the words themselves, for next-word prediction; padding is ignored."""
    data = words(length)
    return {**data, "labels": data["input_ids"].masked_fill(data["attention_mask"] == 0, -100)}


def hidden_words(length: int = LENGTH) -> dict[str, Tensor]:
    """Sentences in which some words are replaced by token 3; only these have labels."""
    data = words(length, low=4)
    chosen = (integers(0, 4, ROWS, length, seed=4) == 0) & (data["attention_mask"] == 1)
    labels = data["input_ids"].masked_fill(~chosen, -100)
    return {**data, "input_ids": data["input_ids"].masked_fill(chosen, 3), "labels": labels}


def classes(length: int = LENGTH, number: int = 3) -> dict[str, Tensor]:
    """Sentences with a class each."""
    return {**words(length), "labels": integers(0, number, ROWS)}


def word_classes(length: int = LENGTH, number: int = 3) -> dict[str, Tensor]:
    """Sentences with a class for every word."""
    data = words(length)
    labels = integers(0, number, ROWS, length, seed=5).masked_fill(data["attention_mask"] == 0, -100)
    return {**data, "labels": labels}


def spans(length: int = LENGTH) -> dict[str, Tensor]:
    """Texts with the positions of an answer's first and last word."""
    half = length // 2
    return {
        **words(length),
        "start_positions": integers(0, half, ROWS, seed=6),
        "end_positions": integers(half, length, ROWS, seed=7),
    }


def pairs(length: int = LENGTH) -> dict[str, Tensor]:
    """Source and target sentences."""
    target = next_words(length - 2)["labels"].flip(0)
    return {**words(length), "labels": target}


def add(
    entries: list[Entry],
    family: str,
    name: str,
    kind: str,
    config: str,
    options: Mapping[str, Any],
    data: Data = next_words,
    *,
    objective: Objective = own_loss,
    quick: bool = False,
    change: Callable[[nn.Module], object] | None = None,
) -> None:
    """Add a model class to a family's entries; `change` modifies the model as a user would."""

    def make() -> Training:
        model = made(kind, config, **options)
        if change is not None:
            change(model)
        return Training(model, objective, data())

    entries.append(Entry(family, name, make, quick))
