"""Decoder language models from Hugging Face's `transformers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from torch import nn

from tests.models.entry import Entry
from tests.models.hugging_face import (
    GROUPED,
    SIZES,
    SPECIAL,
    VOCABULARY,
    Data,
    add,
    classes,
    next_words,
    word_classes,
)

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "transformers decoders"


def _decoder(
    name: str,
    model: str,
    options: Mapping[str, Any],
    data: Data = next_words,
    *,
    head: str = "ForCausalLM",
    config: str = "",
    quick: bool = False,
    change: Callable[[nn.Module], object] | None = None,
) -> None:
    """Add a model whose class names begin with `model`."""
    config = config or f"{model}Config"
    add(ENTRIES, FAMILY, name, model + head, config, options, data, quick=quick, change=change)


def _checkpointing(model: nn.Module) -> None:
    model.gradient_checkpointing_enable()  # type: ignore[operator]


GPT2 = {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 4, **SPECIAL}
GPT2_DRY = {**GPT2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
HEADS = {**GROUPED, "head_dim": 8}
GEMMA3 = {**HEADS, "sliding_window": 4, "query_pre_attn_scalar": 8}
THREE = {"num_labels": 3}
OPT = {
    **{name: size for name, size in SIZES.items() if name != "intermediate_size"},
    "ffn_dim": 40,
    "word_embed_proj_dim": 16,
    "dropout": 0.0,
}
NEO = {
    **SIZES,
    "num_layers": 2,
    "num_heads": 4,
    "window_size": 4,
    "attention_types": [[["global", "local"], 1]],
    "attention_dropout": 0.0,
    "embed_dropout": 0.0,
    "resid_dropout": 0.0,
}
MPT = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "n_layers": 2,
    "n_heads": 4,
    "expansion_ratio": 2,
    "max_seq_len": 32,
    **SPECIAL,
}
BLOOM = {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 4, **SPECIAL}
XGLM = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "ffn_dim": 40,
    "num_layers": 2,
    "attention_heads": 4,
    "max_position_embeddings": 32,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    **SPECIAL,
}
CTRL = {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": 32, "dff": 40, "n_layer": 2, "n_head": 4}
CODEGEN = {**GPT2_DRY, "rotary_dim": 4, "n_ctx": 32}

_decoder("GPT-2 with dropout", "GPT2", GPT2, head="LMHeadModel", quick=True)
_decoder("GPT-2, checkpointed", "GPT2", GPT2_DRY, head="LMHeadModel", change=_checkpointing)
_decoder("GPT-2 classifier", "GPT2", {**GPT2_DRY, **THREE}, classes, head="ForSequenceClassification")
_decoder("GPT-NeoX", "GPTNeoX", SIZES)
_decoder("GPT-J", "GPTJ", {**GPT2_DRY, "rotary_dim": 4})
_decoder("GPT Neo, local attention", "GPTNeo", NEO)
_decoder("GPT BigCode", "GPTBigCode", GPT2_DRY)
_decoder("CodeGen", "CodeGen", CODEGEN)
_decoder("OpenAI GPT", "OpenAIGPT", GPT2_DRY, head="LMHeadModel")
_decoder("CTRL", "CTRL", {**CTRL, "resid_pdrop": 0.0, "embd_pdrop": 0.0}, head="LMHeadModel")
_decoder("OPT", "OPT", OPT)
_decoder("XGLM", "XGLM", XGLM)
_decoder("BLOOM", "Bloom", BLOOM)
_decoder("MPT", "Mpt", MPT)
_decoder("Falcon", "Falcon", {**BLOOM, "num_hidden_layers": 2, "num_attention_heads": 4})
_decoder("Llama", "Llama", {**GROUPED, "tie_word_embeddings": True}, quick=True)
_decoder("Llama, checkpointed", "Llama", GROUPED, change=_checkpointing)
_decoder("Llama classifier", "Llama", {**GROUPED, **THREE}, classes, head="ForSequenceClassification")
_decoder("Mistral, sliding window", "Mistral", {**GROUPED, "sliding_window": 4})
_decoder("Qwen2", "Qwen2", GROUPED)
_decoder("Qwen2, words", "Qwen2", {**GROUPED, **THREE}, word_classes, head="ForTokenClassification")
_decoder("Qwen3", "Qwen3", HEADS)
_decoder("Gemma", "Gemma", HEADS)
_decoder("Gemma 2", "Gemma2", {**HEADS, "sliding_window": 4})
_decoder("Gemma 3", "Gemma3", GEMMA3, config="Gemma3TextConfig")
_decoder("Phi", "Phi", SIZES)
_decoder("Phi-3", "Phi3", {**GROUPED, "original_max_position_embeddings": 32})
_decoder("StableLM", "StableLm", {**GROUPED, "partial_rotary_factor": 0.5})
_decoder("Cohere", "Cohere", GROUPED)
_decoder("Cohere 2", "Cohere2", {**GROUPED, "sliding_window": 4})
_decoder("OLMo", "Olmo", GROUPED)
_decoder("OLMo 2", "Olmo2", GROUPED)
_decoder("Granite", "Granite", GROUPED)
_decoder("StarCoder 2", "Starcoder2", {**GROUPED, "sliding_window": 4})
_decoder("Nemotron", "Nemotron", GROUPED)
_decoder("GLM", "Glm", HEADS)
_decoder("SmolLM 3", "SmolLM3", GROUPED)
_decoder("Persimmon", "Persimmon", SIZES)
_decoder("BitNet", "BitNet", GROUPED)
_decoder("DiffLlama", "DiffLlama", GROUPED)
_decoder("BioGPT", "BioGpt", {**SIZES, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})
