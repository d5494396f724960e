"""Models of images, sounds, series and several at once, of Hugging Face's `transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn

from protocol.capture import Objective
from tests.models.entry import ROWS, Entry, Training, entry, integers, normal
from tests.models.hugging_face import (
    DRY,
    GROUPED,
    SIZES,
    SPECIAL,
    VOCABULARY,
    Data,
    add,
    made,
    own_loss,
    words,
)

ENTRIES: Final[list[Entry]] = []
VISION: Final = "transformers vision"
SPEECH: Final = "transformers speech"
TEXT_AND: Final = "transformers text and images or sounds"
SERIES: Final = "transformers series"


def _pictures(size: int = 16, *labels: int) -> dict[str, Tensor]:
    """Images, each of one of three classes."""
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
    """A model whose classes begin with `model`."""
    add(
        ENTRIES,
        VISION,
        name,
        model + head,
        f"{model}Config",
        {"num_labels": 3, **options},
        data,
        objective=objective,
        quick=quick,
    )


def _segments(size: int) -> dict[str, Tensor]:
    """Images whose pixels have classes; some pixels have none."""
    labels = integers(0, 3, ROWS, size, size)
    labels[:, 0] = 255
    return {"pixel_values": normal(ROWS, 3, size, size), "labels": labels}


BLOCKS: Mapping[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
}
VIT = {**BLOCKS, "image_size": 16, "patch_size": 4}
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
    "patch_sizes": [2, 2],
    "strides": [2, 2],
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


@entry(ENTRIES, VISION, "DETR, encoder and decoder")
def detr() -> Training:
    """Without the matching of queries and objects, which is not of torch: each query has its object."""
    from transformers import DetrConfig, ResNetConfig

    backbone = ResNetConfig(**RESNET, out_features=["stage2"])
    sizes = {f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in COUNTS.items()}
    config = DetrConfig(
        backbone_config=backbone, d_model=32, num_queries=4, dropout=0.0, num_labels=3, **sizes
    )
    data = {
        "pixel_values": normal(ROWS, 3, 32, 32),
        "classes": integers(0, 4, ROWS, 4),
        "boxes": normal(ROWS, 4, 4).sigmoid(),
    }
    return Training(made("DetrForObjectDetection", config), _matched, data)


COUNTS: Mapping[str, int] = {"layers": 2, "ffn_dim": 40, "attention_heads": 4}


def _matched(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    found = model(pixel_values=batch["pixel_values"])
    loss = nn.functional.cross_entropy(found.logits.flatten(0, 1), batch["classes"].flatten())
    return loss + nn.functional.l1_loss(found.pred_boxes, batch["boxes"])


def _sounds(length: int = 200) -> dict[str, Tensor]:
    """Waves of three classes."""
    return {"input_values": normal(ROWS, length), "labels": integers(0, 3, ROWS)}


def _spoken(length: int = 200, words: int = 4) -> dict[str, Tensor]:
    """Waves and what is said in them."""
    return {"input_values": normal(ROWS, length), "labels": integers(1, 12, ROWS, words)}


WAVES: Mapping[str, Any] = {
    **BLOCKS,
    "vocab_size": 12,
    "conv_dim": [16, 16],
    "conv_stride": [5, 2],
    "conv_kernel": [10, 3],
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "classifier_proj_size": 16,
    "hidden_dropout": 0.0,
    "activation_dropout": 0.0,
    "attention_dropout": 0.0,
    "final_dropout": 0.0,
    "layerdrop": 0.0,
    "apply_spec_augment": False,
    "num_labels": 3,
}
WHISPER = {
    "vocab_size": VOCABULARY,
    "num_mel_bins": 8,
    "d_model": 32,
    "max_source_positions": 10,
    "max_target_positions": 16,
    "decoder_start_token_id": 2,
    **{f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in COUNTS.items()},
    **SPECIAL,
}


def _speech(name: str, model: str, options: Mapping[str, Any], data: Data, head: str) -> None:
    """A model whose classes begin with `model`."""
    add(ENTRIES, SPEECH, name, model + head, f"{model}Config", options, data)


def _heard() -> dict[str, Tensor]:
    return {"input_features": normal(ROWS, 8, 20), "labels": integers(3, VOCABULARY, ROWS, 6)}


_speech("Whisper", "Whisper", WHISPER, _heard, "ForConditionalGeneration")
_speech("wav2vec 2, CTC", "Wav2Vec2", WAVES, _spoken, "ForCTC")
_speech("wav2vec 2 classifier", "Wav2Vec2", WAVES, _sounds, "ForSequenceClassification")
_speech("HuBERT", "Hubert", WAVES, _sounds, "ForSequenceClassification")
_speech("WavLM", "WavLM", WAVES, _sounds, "ForSequenceClassification")
_speech("SEW", "SEW", WAVES, _sounds, "ForSequenceClassification")
_speech("UniSpeech", "UniSpeech", WAVES, _sounds, "ForSequenceClassification")
add(
    ENTRIES,
    SPEECH,
    "AST",
    "ASTForAudioClassification",
    "ASTConfig",
    {
        **BLOCKS,
        "patch_size": 4,
        "frequency_stride": 2,
        "time_stride": 3,
        "max_length": 16,
        "num_mel_bins": 8,
        "num_labels": 3,
    },
    lambda: {"input_values": normal(ROWS, 16, 8), "labels": integers(0, 3, ROWS)},
)


def _captions(size: int = 16) -> dict[str, Tensor]:
    """Images and sentences that belong to them."""
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
    add(ENTRIES, TEXT_AND, name, model + head, f"{config or model}Config", options, data, objective=objective)


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
        "text_config": {**SIZES, **DRY, "pad_token_id": 1},
        "vision_config": VIT,
    },
    "ForImageAndTextRetrieval",
    _fitting,
    own_loss,
)


@entry(ENTRIES, TEXT_AND, "LLaVA")
def llava() -> Training:
    """The first words of every sentence stand for the parts of its image."""
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


def _series(name: str, kind: str, config: str, options: Mapping[str, Any], data: Data, **more: Any) -> None:
    add(ENTRIES, SERIES, name, kind, config, options, data, **more)


def _past_and_future() -> dict[str, Tensor]:
    """A series of 12 hours, of which the first 3 are lags, and the 4 that follow."""
    return {
        "past_values": normal(ROWS, 12),
        "past_time_features": normal(ROWS, 12, 1, seed=8),
        "past_observed_mask": torch.ones(ROWS, 12),
        "future_values": normal(ROWS, 4, seed=9),
        "future_time_features": normal(ROWS, 4, 1, seed=10),
    }


AHEAD = {
    "prediction_length": 4,
    "context_length": 9,
    "lags_sequence": [1, 2, 3],
    "num_time_features": 1,
    "d_model": 16,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}
PATCHTST = {
    "num_input_channels": 2,
    "context_length": 16,
    "patch_length": 4,
    "patch_stride": 4,
    "num_hidden_layers": 2,
    "d_model": 16,
    "ffn_dim": 24,
    "prediction_length": 4,
}
MIXER = {name: value for name, value in PATCHTST.items() if name != "ffn_dim"}


def _channels() -> dict[str, Tensor]:
    return {"past_values": normal(ROWS, 16, 2), "future_values": normal(ROWS, 4, 2, seed=9)}


def _return(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Of the decision transformer: how far its actions are from those that were taken."""
    found = model(**batch).action_preds
    return nn.functional.mse_loss(found, batch["actions"])


def _deeds() -> dict[str, Tensor]:
    return {
        "states": normal(ROWS, 5, 3),
        "actions": normal(ROWS, 5, 2, seed=8).tanh(),
        "rewards": normal(ROWS, 5, 1, seed=9),
        "returns_to_go": normal(ROWS, 5, 1, seed=10),
        "timesteps": torch.arange(5).repeat(ROWS, 1),
        "attention_mask": torch.ones(ROWS, 5, dtype=torch.long),
    }


DECISION = {
    "state_dim": 3,
    "act_dim": 2,
    "hidden_size": 32,
    "max_ep_len": 20,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 32,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}

_series(
    "Time Series Transformer",
    "TimeSeriesTransformerForPrediction",
    "TimeSeriesTransformerConfig",
    {**AHEAD, "distribution_output": "student_t"},
    _past_and_future,
)
_series(
    "Time Series Transformer, normal",
    "TimeSeriesTransformerForPrediction",
    "TimeSeriesTransformerConfig",
    {**AHEAD, "distribution_output": "normal"},
    _past_and_future,
)
_series(
    "Informer",
    "InformerForPrediction",
    "InformerConfig",
    {**AHEAD, "distribution_output": "normal", "sampling_factor": 2},
    _past_and_future,
)
_series(
    "Autoformer",
    "AutoformerForPrediction",
    "AutoformerConfig",
    {**AHEAD, "distribution_output": "normal"},
    _past_and_future,
)
_series("PatchTST", "PatchTSTForPrediction", "PatchTSTConfig", PATCHTST, _channels)
_series("PatchTSMixer", "PatchTSMixerForPrediction", "PatchTSMixerConfig", MIXER, _channels)
_series(
    "Decision Transformer",
    "DecisionTransformerModel",
    "DecisionTransformerConfig",
    DECISION,
    _deeds,
    objective=_return,
)
