"""Encoders and encoder-decoders from Hugging Face's `transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.models.entry import Entry
from tests.models.hugging_face import (
    DRY,
    SIZES,
    SPECIAL,
    VOCABULARY,
    Data,
    add,
    classes,
    hidden_words,
    pairs,
    spans,
    word_classes,
)

ENTRIES: Final[list[Entry]] = []
ENCODERS: Final = "transformers encoders"
BOTH: Final = "transformers encoder-decoders"


def _encoder(
    name: str,
    model: str,
    options: Mapping[str, Any],
    head: str = "ForMaskedLM",
    data: Data = hidden_words,
    *,
    quick: bool = False,
) -> None:
    """Add a model whose class names begin with `model`."""
    add(ENTRIES, ENCODERS, name, model + head, f"{model}Config", options, data, quick=quick)


def _both(name: str, model: str, options: Mapping[str, Any], *, quick: bool = False) -> None:
    """Add a sequence-to-sequence model."""
    add(
        ENTRIES,
        BOTH,
        name,
        f"{model}ForConditionalGeneration",
        f"{model}Config",
        options,
        pairs,
        quick=quick,
    )


def _whole() -> dict[str, Any]:
    """The data of `_longer`, but without the attention mask."""
    data = _longer()
    return {name: data[name] for name in ("input_ids", "labels")}


def _longer() -> dict[str, Any]:
    """Longer sequences, for models with local attention."""
    return hidden_words(16)


BERT = {**SIZES, **DRY}
SMALL = {**BERT, "embedding_size": 16}
THREE = {"num_labels": 3}
DISTIL = {
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 32,
    "n_layers": 2,
    "n_heads": 4,
    "dim": 32,
    "hidden_dim": 40,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    **SPECIAL,
}
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
XLNET = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "n_layer": 2,
    "n_head": 4,
    "d_inner": 40,
    "dropout": 0.0,
    **SPECIAL,
    **THREE,
}
FUNNEL = {
    "vocab_size": VOCABULARY,
    "block_sizes": [1, 1],
    "num_decoder_layers": 1,
    "d_model": 32,
    "n_head": 4,
    "d_head": 8,
    "d_inner": 40,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "pad_token_id": 0,
}
MODERN = {
    **SIZES,
    "cls_token_id": 1,
    "sep_token_id": 2,
    "local_attention": 6,
    "global_attn_every_n_layers": 2,
    "num_hidden_layers": 2,
}
NYSTROM = {**BERT, "segment_means_seq_len": 16, "num_landmarks": 4, "conv_kernel_size": 5}
SEQ = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "encoder_ffn_dim": 40,
    "encoder_attention_heads": 4,
    "decoder_layers": 2,
    "decoder_ffn_dim": 40,
    "decoder_attention_heads": 4,
    "max_position_embeddings": 32,
    "dropout": 0.0,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": 2,
    **SPECIAL,
}
T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 40,
    "num_layers": 2,
    "num_heads": 4,
    "dropout_rate": 0.0,
    "decoder_start_token_id": 0,
}
LED = {
    **SEQ,
    "attention_window": 8,
    "max_encoder_position_embeddings": 32,
    "max_decoder_position_embeddings": 32,
}

_encoder("BERT with dropout", "Bert", SIZES)
_encoder("BERT, words", "Bert", {**BERT, **THREE}, "ForTokenClassification", word_classes)
_encoder("BERT, answers", "Bert", BERT, "ForQuestionAnswering", spans)
_encoder("RoBERTa", "Roberta", {**BERT, "pad_token_id": 1, "bos_token_id": 0})
_encoder(
    "DistilBERT classifier",
    "DistilBert",
    {**DISTIL, **THREE},
    "ForSequenceClassification",
    classes,
    quick=True,
)
_encoder("ALBERT", "Albert", {**SMALL, "classifier_dropout_prob": 0.0})
_encoder("ELECTRA", "Electra", SMALL)
_encoder("DeBERTa", "Deberta", {**BERT, **RELATIVE})
_encoder("DeBERTa v2", "DebertaV2", {**BERT, **RELATIVE})
_encoder(
    "DeBERTa v3",
    "DebertaV2",
    {**BERT, **RELATIVE, "share_att_key": True, "position_buckets": 4, "norm_rel_ebd": "layer_norm"},
)
_encoder("MPNet", "MPNet", {**BERT, "pad_token_id": 1})
_encoder("XLNet", "XLNet", {**XLNET, "summary_last_dropout": 0.0}, "ForSequenceClassification", classes)
_encoder("FNet", "FNet", SIZES)
_encoder("Longformer", "Longformer", {**BERT, "attention_window": 4}, data=_longer)
_encoder("BigBird", "BigBird", {**BERT, "attention_type": "original_full"})
_encoder("Funnel", "Funnel", FUNNEL)
_encoder("ModernBERT", "ModernBert", MODERN)
_encoder("ConvBERT", "ConvBert", SMALL)
_encoder("Nyströmformer", "Nystromformer", NYSTROM, data=_whole)
_encoder("MobileBERT", "MobileBert", {**SMALL, "intra_bottleneck_size": 16})
_encoder("SqueezeBERT", "SqueezeBert", {**BERT, "embedding_size": 32})
_encoder("RoFormer", "RoFormer", BERT)
_encoder("LayoutLM", "LayoutLM", BERT)

_both("T5", "T5", T5)
_both("mT5", "MT5", {**T5, "feed_forward_proj": "gated-gelu"})
_both("BART", "Bart", SEQ)
_both("mBART", "MBart", SEQ)
_both("Pegasus", "Pegasus", SEQ)
_both("LED", "LED", LED)
_both("Switch Transformers", "SwitchTransformers", {**T5, "num_experts": 4, "num_sparse_encoder_layers": 1})
add(
    ENTRIES,
    BOTH,
    "Marian",
    "MarianMTModel",
    "MarianConfig",
    {**SEQ, "pad_token_id": 60, "decoder_start_token_id": 60},
    pairs,
)
add(
    ENTRIES,
    BOTH,
    "ProphetNet",
    "ProphetNetForConditionalGeneration",
    "ProphetNetConfig",
    {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "encoder_ffn_dim": 40,
        "num_encoder_layers": 2,
        "num_encoder_attention_heads": 4,
        "decoder_ffn_dim": 40,
        "num_decoder_layers": 2,
        "num_decoder_attention_heads": 4,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "max_position_embeddings": 32,
        **SPECIAL,
    },
    pairs,
)
