"""Other architectures of Hugging Face's `transformers`, unmodified and small, with random weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from protocol.capture import capture
from tests.unit.capture.steps import drawn, torch_step

transformers = pytest.importorskip("transformers")

SIZES: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
GROUPED = SIZES | {"num_key_value_heads": 2}
OPT = {k: v for k, v in SIZES.items() if k != "intermediate_size"} | {
    "ffn_dim": 40,
    "word_embed_proj_dim": 32,
}
T5 = {"vocab_size": 61, "d_model": 32, "d_kv": 8, "d_ff": 40, "num_layers": 1, "num_heads": 4}

EXPERTS = GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2, "output_router_logits": True}

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "mistral": ("MistralConfig", "MistralForCausalLM", GROUPED | {"sliding_window": 5}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", GROUPED | {"head_dim": 8}),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", GROUPED | {"head_dim": 8}),
    "gpt-neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", SIZES),
    "opt": ("OPTConfig", "OPTForCausalLM", OPT),
    "phi": ("PhiConfig", "PhiForCausalLM", SIZES),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", EXPERTS),
    "bert": ("BertConfig", "BertForMaskedLM", SIZES),
    "t5": ("T5Config", "T5ForConditionalGeneration", T5 | {"decoder_start_token_id": 0}),
}


def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The model's own loss."""
    loss: Tensor = model(input_ids=batch["tokens"], labels=batch["tokens"]).loss
    return loss


@pytest.mark.parametrize("name", MODELS)
def test_architecture_trains_as_in_torch(name: str) -> None:
    config, kind, options = MODELS[name]
    torch.manual_seed(0)
    model: nn.Module = getattr(transformers, kind)(getattr(transformers, config)(**options)).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tokens = torch.randint(3, 61, (20, 12), generator=torch.Generator().manual_seed(1))
    step = capture(model, objective, optimizer, {"tokens": tokens}, batch_size=6, steps=2)
    state = step.initial_state(0)
    for _ in range(2):
        loss = torch_step(model, objective, optimizer, drawn(step, state))
        state = step.step(state)
        torch.testing.assert_close(state["metric.loss"], loss, rtol=1e-3, atol=1e-3)
