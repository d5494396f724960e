"""Mixture-of-experts and recurrent language models from Hugging Face's `transformers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from torch import nn

from tests.models.entry import Entry
from tests.models.hugging_face import GROUPED, SIZES, SPECIAL, VOCABULARY, add, next_words

ENTRIES: Final[list[Entry]] = []
EXPERTS: Final = "transformers experts"
RECURRENT: Final = "transformers recurrences"


def _experts(name: str, model: str, options: Mapping[str, Any], head: str = "ForCausalLM") -> None:
    """Add a model whose class names begin with `model`."""
    add(ENTRIES, EXPERTS, name, model + head, f"{model}Config", options, next_words)


def _recurrent(
    name: str,
    model: str,
    options: Mapping[str, Any],
    head: str = "ForCausalLM",
    change: Callable[[nn.Module], object] | None = None,
) -> None:
    """Add a model whose class names begin with `model`."""
    add(ENTRIES, RECURRENT, name, model + head, f"{model}Config", options, next_words, change=change)


BATCHED: Mapping[str, Any] = {"experts_implementation": "batched_mm"}
EXPERT: Mapping[str, Any] = {**GROUPED, "moe_intermediate_size": 24, "num_experts_per_tok": 2}
FOUR: Mapping[str, Any] = {**EXPERT, "num_experts": 4, "output_router_logits": True}
LOCAL: Mapping[str, Any] = {**EXPERT, "num_local_experts": 4, "output_router_logits": True}
QWEN: Mapping[str, Any] = {**FOUR, "norm_topk_prob": True, "head_dim": 8}
DEEPSEEK: Mapping[str, Any] = {
    **SIZES,
    "moe_intermediate_size": 24,
    "num_key_value_heads": 4,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "kv_lora_rank": 8,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "first_k_dense_replace": 1,
    "n_group": 2,
    "topk_group": 1,
}
JET: Mapping[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "kv_channels": 8,
    "intermediate_size": 40,
    "num_local_experts": 4,
    "max_position_embeddings": 32,
    **SPECIAL,
}
DBRX: Mapping[str, Any] = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "n_heads": 4,
    "n_layers": 2,
    "max_seq_len": 32,
    "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 10000.0},
    "ffn_config": {"ffn_hidden_size": 24, "moe_num_experts": 4, "moe_top_k": 2, "hidden_size": 32},
    **SPECIAL,
}

_experts("Mixtral", "Mixtral", LOCAL)
_experts("Mixtral, batched", "Mixtral", {**LOCAL, **BATCHED})
_experts("Qwen2 MoE", "Qwen2Moe", {**FOUR, "shared_expert_intermediate_size": 24})
_experts("Qwen3 MoE", "Qwen3Moe", QWEN)
_experts("OLMoE", "Olmoe", FOUR)
_experts("Granite MoE", "GraniteMoe", LOCAL)
_experts("gpt-oss", "GptOss", {**LOCAL, "head_dim": 8, "sliding_window": 4})
_experts("PhiMoE", "Phimoe", LOCAL)
_experts("DeepSeek V2", "DeepseekV2", {**DEEPSEEK, "topk_method": "greedy"})
_experts("DeepSeek V3", "DeepseekV3", DEEPSEEK)
_experts("JetMoE", "JetMoe", JET)
_experts("DBRX", "Dbrx", DBRX)

MAMBA: Mapping[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "state_size": 4,
    "num_hidden_layers": 2,
    **SPECIAL,
}
MAMBA2: Mapping[str, Any] = {
    **MAMBA,
    "num_heads": 4,
    "head_dim": 8,
    "n_groups": 1,
    "chunk_size": 4,
}
RWKV: Mapping[str, Any] = {
    "vocab_size": VOCABULARY,
    "context_length": 16,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "intermediate_size": 24,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GRIFFIN: Mapping[str, Any] = {
    **GROUPED,
    "head_dim": 8,
    "lru_width": 32,
    "attention_window_size": 4,
    "block_types": ["recurrent", "attention"],
}
JAMBA: Mapping[str, Any] = {
    **GROUPED,
    "num_experts": 2,
    "num_experts_per_tok": 1,
    "expert_layer_period": 2,
    "expert_layer_offset": 1,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "use_mamba_kernels": False,
    "mamba_d_state": 4,
    "mamba_dt_rank": 2,
}
BAMBA: Mapping[str, Any] = {
    **GROUPED,
    "attn_layer_indices": [1],
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_d_state": 4,
    "mamba_chunk_size": 4,
}
NEXT: Mapping[str, Any] = {
    **QWEN,
    "shared_expert_intermediate_size": 24,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "layer_types": ["linear_attention", "full_attention"],
}

_recurrent("Mamba", "Mamba", MAMBA)
_recurrent("Mamba 2", "Mamba2", MAMBA2)
_recurrent("Falcon Mamba", "FalconMamba", MAMBA)
_recurrent("RWKV", "Rwkv", RWKV)
_recurrent("RecurrentGemma", "RecurrentGemma", GRIFFIN, change=nn.Module.float)
_recurrent("Jamba", "Jamba", JAMBA)
_recurrent("Bamba", "Bamba", BAMBA)
_recurrent("LFM 2", "Lfm2", {**GROUPED, "layer_types": ["conv", "full_attention"]})
_recurrent("Qwen3 Next", "Qwen3Next", NEXT)
