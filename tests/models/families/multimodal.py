"""Models of text with images or audio, from Hugging Face's `transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn

from protocol.capture import Objective
from tests.models.entry import ROWS, Entry, Training, entry, integers, normal
from tests.models.hugging_face import (
    BLOCKS,
    DRY,
    GROUPED,
    SIZES,
    VIT,
    VOCABULARY,
    Data,
    add,
    made,
    own_loss,
    words,
)

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "transformers text and images or sounds"


def _captions(size: int = 16) -> dict[str, Tensor]:
    """Images with captions."""
    return {**words(), "pixel_values": normal(ROWS, 3, size, size)}


def _contrast(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    loss: Tensor = model(**batch, return_loss=True).loss
    return loss


CLIP = {"text_config": {**SIZES, "projection_dim": 16}, "vision_config": VIT, "projection_dim": 16}
SIGLIP = {"text_config": {**SIZES, "projection_size": 32}, "vision_config": VIT}
BLIP_TEXT = {**SIZES, "encoder_hidden_size": 32, "projection_dim": 16, "sep_token_id": 2}
BLIP = {"text_config": BLIP_TEXT, "vision_config": VIT, "projection_dim": 16, "image_text_hidden_size": 16}
CLAP_SOUND = {
    "window_size": 4,
    "num_mel_bins": 8,
    "spec_size": 32,
    "patch_size": 2,
    "patch_stride": [2, 2],
    "hidden_size": 32,
    "patch_embeds_hidden_size": 16,
    "depths": [1, 1],
    "num_hidden_layers": 2,
    "num_attention_heads": [2, 4],
    "hidden_dropout_prob": 0.0,
    "projection_dim": 16,
}
CLAP = {
    "text_config": {**SIZES, **DRY, "projection_dim": 16},
    "audio_config": CLAP_SOUND,
    "projection_dim": 16,
}


def _pair(
    name: str,
    model: str,
    options: Mapping[str, Any],
    head: str = "Model",
    data: Data = _captions,
    objective: Objective = _contrast,
    config: str = "",
) -> None:
    add(ENTRIES, FAMILY, name, model + head, f"{config or model}Config", options, data, objective=objective)


def _heard_captions() -> dict[str, Tensor]:
    return {**words(), "input_features": normal(ROWS, 1, 32, 8)}


def _told() -> dict[str, Tensor]:
    data = _captions()
    return {**data, "labels": data["input_ids"].masked_fill(data["attention_mask"] == 0, -100)}


def _answered() -> dict[str, Tensor]:
    return {**_captions(), "labels": normal(ROWS, 3).sigmoid()}


def _fitting() -> dict[str, Tensor]:
    return {**_captions(), "labels": integers(0, 2, ROWS)}


_pair("CLIP", "CLIP", CLIP)
_pair("SigLIP", "Siglip", SIGLIP)
_pair("BLIP", "Blip", BLIP)
_pair("BLIP, captions", "Blip", BLIP, "ForConditionalGeneration", _told, own_loss)
_pair("CLAP", "Clap", CLAP, data=_heard_captions)
_pair(
    "ViLT",
    "Vilt",
    {**SIZES, **VIT, "num_labels": 3, "max_image_length": 16},
    "ForQuestionAnswering",
    _answered,
    own_loss,
)
_pair(
    "BridgeTower",
    "BridgeTower",
    {
        **BLOCKS,
        "hidden_size": 64,
        "text_config": {**SIZES, **DRY, "hidden_size": 64, "pad_token_id": 1},
        "vision_config": {**VIT, "hidden_size": 64},
    },
    "ForImageAndTextRetrieval",
    _fitting,
    own_loss,
)


@entry(ENTRIES, FAMILY, "LLaVA")
def llava() -> Training:
    """The first 16 tokens of every sequence are placeholders for image patches."""
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig

    image = VOCABULARY - 1
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**VIT),
        text_config=LlamaConfig(**GROUPED),
        image_token_index=image,
        vision_feature_layer=-1,
    )
    parts = torch.full((ROWS, 16), image)
    told = integers(3, image, ROWS, 6)
    labels = torch.cat([torch.full_like(parts, -100), told], 1)
    data = {
        "input_ids": torch.cat([parts, told], 1),
        "attention_mask": torch.ones_like(labels),
        "pixel_values": normal(ROWS, 3, 16, 16),
        "labels": labels,
    }
    return Training(made("LlavaForConditionalGeneration", config), own_loss, data)
