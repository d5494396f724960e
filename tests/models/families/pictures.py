"""Image models from Hugging Face's `transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from torch import Tensor, nn

from protocol.capture import Objective
from tests.models.entry import ROWS, Entry, Training, entry, integers, normal
from tests.models.hugging_face import COUNTS, VIT, Data, add, made, own_loss

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "transformers vision"


def _pictures(size: int = 16, *labels: int) -> dict[str, Tensor]:
    """Images with labels from three classes."""
    return {"pixel_values": normal(ROWS, 3, size, size), "labels": integers(0, 3, ROWS, *labels)}


def _vision(
    name: str,
    model: str,
    options: Mapping[str, Any],
    data: Data = _pictures,
    head: str = "ForImageClassification",
    *,
    objective: Objective = own_loss,
    quick: bool = False,
) -> None:
    """Add a model whose class names begin with `model`."""
    add(
        ENTRIES,
        FAMILY,
        name,
        model + head,
        f"{model}Config",
        {"num_labels": 3, **options},
        data,
        objective=objective,
        quick=quick,
    )


def _segments(size: int) -> dict[str, Tensor]:
    """Images with a class for every pixel except those of the first row."""
    labels = integers(0, 3, ROWS, size, size)
    labels[:, 0] = 255
    return {"pixel_values": normal(ROWS, 3, size, size), "labels": labels}


WINDOWED = {
    "image_size": 16,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
    "drop_path_rate": 0.0,
}
STAGES = {"num_stages": 2, "hidden_sizes": [16, 32], "depths": [1, 1], "image_size": 16}
SEGFORMER = {
    "num_encoder_blocks": 2,
    "depths": [1, 1],
    "sr_ratios": [2, 1],
    "hidden_sizes": [16, 32],
    "patch_sizes": [3, 3],
    "strides": [2, 2],
    "num_attention_heads": [2, 4],
    "mlp_ratios": [2, 2],
    "decoder_hidden_size": 16,
    "classifier_dropout_prob": 0.0,
    "drop_path_rate": 0.0,
}
MOBILE = {
    "image_size": 32,
    "hidden_sizes": [16, 24, 32],
    "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 32],
    "hidden_dropout_prob": 0.0,
    "classifier_dropout_prob": 0.0,
}
MAE = {
    **VIT,
    "decoder_num_attention_heads": 2,
    "decoder_hidden_size": 16,
    "decoder_num_hidden_layers": 1,
    "decoder_intermediate_size": 24,
}
POOL = {"num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [16, 32]}
PATCHES = {"patch_sizes": [3, 3], "strides": [2, 2], "padding": [1, 1], **POOL}
PVT = {
    **POOL,
    "image_size": 16,
    "patch_sizes": [4, 2],
    "strides": [4, 2],
    "num_attention_heads": [2, 4],
    "sequence_reduction_ratios": [2, 1],
    "mlp_ratios": [2, 2],
}
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}

_vision("ViT", "ViT", VIT, quick=True)
_vision("DeiT", "DeiT", VIT)
_vision("BEiT", "Beit", {**VIT, "use_relative_position_bias": True, "drop_path_rate": 0.0})
_vision("Swin", "Swin", WINDOWED)
_vision("Swin v2, with stochastic depth", "Swinv2", {**WINDOWED, "drop_path_rate": 0.2})
_vision("SegFormer", "Segformer", SEGFORMER)
_vision("SegFormer, pixels", "Segformer", SEGFORMER, partial(_segments, 16), "ForSemanticSegmentation")
_vision("ConvNeXt", "ConvNext", {**STAGES, "patch_size": 2})
_vision("ConvNeXt v2", "ConvNextV2", {**STAGES, "patch_size": 2})
_vision("DINOv2", "Dinov2", {**VIT, "mlp_ratio": 2})
_vision("MobileViT", "MobileViT", MOBILE, partial(_pictures, 32))
_vision("PoolFormer", "PoolFormer", PATCHES)
_vision("PVT", "Pvt", PVT)
_vision("ResNet", "ResNet", RESNET)
_vision("ViT MAE", "ViTMAE", MAE, lambda: {"pixel_values": normal(ROWS, 3, 16, 16)}, "ForPreTraining")


@entry(ENTRIES, FAMILY, "DETR, encoder and decoder")
def detr() -> Training:
    """Each query has a fixed object, because matching queries to objects runs outside torch."""
    from transformers import DetrConfig, ResNetConfig

    stages: dict[str, Any] = {**RESNET, "out_features": ["stage2"]}
    sizes: dict[str, Any] = {
        f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in COUNTS.items()
    }
    sizes |= {"d_model": 32, "num_queries": 4, "dropout": 0.0, "num_labels": 3}
    config = DetrConfig(backbone_config=ResNetConfig(**stages), **sizes)
    data = {
        "pixel_values": normal(ROWS, 3, 32, 32),
        "classes": integers(0, 4, ROWS, 4),
        "boxes": normal(ROWS, 4, 4).sigmoid(),
    }
    return Training(made("DetrForObjectDetection", config), _matched, data)


def _matched(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    found = model(pixel_values=batch["pixel_values"])
    loss = nn.functional.cross_entropy(found.logits.flatten(0, 1), batch["classes"].flatten())
    return loss + nn.functional.l1_loss(found.pred_boxes, batch["boxes"])
