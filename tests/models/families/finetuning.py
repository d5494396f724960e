"""peft adapters on a frozen transformer. The transformer is built from a configuration, so its weights are random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from peft import (
    AdaLoraConfig,
    BOFTConfig,
    FourierFTConfig,
    IA3Config,
    LoHaConfig,
    LoKrConfig,
    LoraConfig,
    OFTConfig,
    PeftConfig,
    PrefixTuningConfig,
    PromptEncoderConfig,
    PromptTuningConfig,
    TaskType,
    VeraConfig,
    get_peft_model,
)
from peft.tuners.lycoris_utils import LycorisLayer
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from tests.models.entry import ROWS, Entry, Training, entry, integers

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "peft"
WORDS: Final = 24
LANGUAGE: Final = TaskType.CAUSAL_LM


def llama() -> nn.Module:
    """A Llama of one layer, without the generation cache."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=WORDS,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=32,
            use_cache=False,
        )
    )


class Tokens(nn.Module):
    """peft's dict of prompt tokens, as buffers of the model."""

    def __init__(self, tokens: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name, t in tokens.items():
            self.register_buffer(name, t)

    def __getitem__(self, name: str) -> Tensor:
        return self.get_buffer(name)


def adapted(
    config: PeftConfig, spread: bool = True, base: Callable[[], nn.Module] = llama, buffers: bool = False
) -> Training:
    """A language model with adapters. Some parameters of the adapters may start at zero. `spread` adds noise
    to the parameters of the adapters, so that all of them have gradients.
    """
    model = get_peft_model(base(), config)
    if buffers:
        model.prompt_tokens = Tokens(model.prompt_tokens)
    if spread:
        with torch.no_grad():
            for p in model.parameters():
                if p.requires_grad:
                    p.add_(torch.randn_like(p) * 0.05)

    def loss(m: nn.Module, b: Any) -> Tensor:
        found: Tensor = m(input_ids=b["x"], labels=b["x"]).loss
        return found

    return Training(model, loss, {"x": integers(0, WORDS, ROWS, 6)}, batch=2)


def settled(training: Training) -> Training:
    """Set the adapters to eval mode. In train mode, they would draw a random number to decide whether to drop
    themselves, although the probability is 0 here.
    """
    for module in training.model.modules():
        if isinstance(module, LycorisLayer):
            module.eval()
    return training


BOTH: Final = ["q_proj", "v_proj"]


@entry(ENTRIES, FAMILY, "LoRA with dropout")
def lora() -> Training:
    return adapted(LoraConfig(task_type=LANGUAGE, r=4, lora_alpha=8, lora_dropout=0.1, target_modules=BOTH))


@entry(ENTRIES, FAMILY, "rsLoRA of all layers, embeddings trained")
def stabilised() -> Training:
    config = LoraConfig(
        task_type=LANGUAGE,
        r=4,
        use_rslora=True,
        target_modules="all-linear",
        modules_to_save=["embed_tokens"],
    )
    return adapted(config, spread=False)


@entry(ENTRIES, FAMILY, "LoRA of GPT-2's convolutions")
def gpt() -> Training:
    def base() -> nn.Module:
        return GPT2LMHeadModel(
            GPT2Config(
                vocab_size=WORDS,
                n_positions=16,
                n_embd=16,
                n_layer=1,
                n_head=2,
                use_cache=False,
                bos_token_id=0,
                eos_token_id=0,
            )
        )

    return adapted(
        LoraConfig(task_type=LANGUAGE, r=4, target_modules=["c_attn"], fan_in_fan_out=True), base=base
    )


@entry(ENTRIES, FAMILY, "DoRA")
def dora() -> Training:
    return adapted(LoraConfig(task_type=LANGUAGE, r=4, use_dora=True, target_modules=BOTH))


@entry(ENTRIES, FAMILY, "AdaLoRA")
def ada() -> Training:
    config = AdaLoraConfig(
        task_type=LANGUAGE, init_r=4, target_r=2, tinit=1, tfinal=1, total_step=10, target_modules=BOTH
    )
    return adapted(config)


@entry(ENTRIES, FAMILY, "IA3")
def ia3() -> Training:
    config = IA3Config(
        task_type=LANGUAGE,
        target_modules=["k_proj", "v_proj", "down_proj"],
        feedforward_modules=["down_proj"],
    )
    return adapted(config)


@entry(ENTRIES, FAMILY, "prompt tuning, its tokens in peft's dict")
def held() -> Training:
    return adapted(PromptTuningConfig(task_type=LANGUAGE, num_virtual_tokens=3))


@entry(ENTRIES, FAMILY, "prompt tuning")
def prompt() -> Training:
    return adapted(PromptTuningConfig(task_type=LANGUAGE, num_virtual_tokens=3), buffers=True)


@entry(ENTRIES, FAMILY, "prompts from an LSTM (p-tuning)")
def encoded() -> Training:
    config = PromptEncoderConfig(
        task_type=LANGUAGE,
        num_virtual_tokens=3,
        encoder_reparameterization_type="LSTM",
        encoder_hidden_size=8,
        encoder_num_layers=1,
    )
    return adapted(config, buffers=True)


@entry(ENTRIES, FAMILY, "prefix tuning")
def prefix() -> Training:
    return adapted(PrefixTuningConfig(task_type=LANGUAGE, num_virtual_tokens=3), buffers=True)


@entry(ENTRIES, FAMILY, "VeRA")
def vera() -> Training:
    return adapted(VeraConfig(task_type=LANGUAGE, r=4, target_modules=BOTH))


@entry(ENTRIES, FAMILY, "LoHa")
def loha() -> Training:
    return settled(adapted(LoHaConfig(task_type=LANGUAGE, r=4, target_modules=BOTH)))


@entry(ENTRIES, FAMILY, "LoHa in train mode, which asks a random number whether it is left out")
def asking() -> Training:
    return adapted(LoHaConfig(task_type=LANGUAGE, r=4, target_modules=BOTH))


@entry(ENTRIES, FAMILY, "LoKr")
def lokr() -> Training:
    return settled(adapted(LoKrConfig(task_type=LANGUAGE, r=4, target_modules=BOTH)))


@entry(ENTRIES, FAMILY, "OFT")
def oft() -> Training:
    return adapted(OFTConfig(task_type=LANGUAGE, r=0, oft_block_size=4, target_modules=BOTH))


@entry(ENTRIES, FAMILY, "OFT by an exact inverse")
def exact() -> Training:
    config = OFTConfig(
        task_type=LANGUAGE, r=0, oft_block_size=4, target_modules=BOTH, use_cayley_neumann=False
    )
    return adapted(config)


@entry(ENTRIES, FAMILY, "BOFT")
def boft() -> Training:
    return adapted(BOFTConfig(task_type=LANGUAGE, boft_block_size=4, target_modules=BOTH))


@entry(ENTRIES, FAMILY, "FourierFT")
def spectrum() -> Training:
    return adapted(FourierFTConfig(task_type=LANGUAGE, n_frequency=8, target_modules=BOTH))
