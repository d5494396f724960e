"""Audio models from Hugging Face's `transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from torch import Tensor

from tests.models.entry import ROWS, Entry, integers, normal
from tests.models.hugging_face import BLOCKS, COUNTS, SPECIAL, VOCABULARY, Data, add

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "transformers speech"


def _sounds(length: int = 200) -> dict[str, Tensor]:
    """Waveforms with labels from three classes."""
    return {"input_values": normal(ROWS, length), "labels": integers(0, 3, ROWS)}


def _spoken(length: int = 200, words: int = 4) -> dict[str, Tensor]:
    """Waveforms with transcripts."""
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
    """Add a model. Its class is named `model` followed by `head`, and its configuration's class `model`
    followed by "Config".
    """
    add(ENTRIES, FAMILY, name, model + head, f"{model}Config", options, data)


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
    FAMILY,
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
