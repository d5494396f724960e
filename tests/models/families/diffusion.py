"""Models from diffusers, trained as in its examples: the noise is added inside the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import torch
import torch.nn.functional as F
from diffusers import (
    AuraFlowTransformer2DModel,
    ControlNetModel,
    DDPMScheduler,
    DiTTransformer2DModel,
    FluxTransformer2DModel,
    PixArtTransformer2DModel,
    SanaTransformer2DModel,
    SD3Transformer2DModel,
    UNet1DModel,
    UNet2DConditionModel,
    UNet2DModel,
    UVit2DModel,
    WanTransformer3DModel,
)
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "diffusers"
Batch = Mapping[str, Tensor]
TIMES: Final = 50


class Denoiser(nn.Module):
    """Trains a network to remove the noise of a random timestep. `options` are passed to the network."""

    def __init__(self, network: nn.Module, target: Literal["noise", "velocity"] = "noise") -> None:
        super().__init__()
        self.network, self.target = network, target
        schedule = DDPMScheduler(num_train_timesteps=TIMES, beta_schedule="squaredcos_cap_v2")
        self.register_buffer("kept", schedule.alphas_cumprod)

    def forward(self, x: Tensor, **options: Any) -> Tensor:
        times = torch.randint(TIMES, (len(x),), device=x.device)
        noise = torch.randn_like(x)
        kept = self.get_buffer("kept")[times].view(-1, *[1] * (x.dim() - 1))
        noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
        found = self.network(noisy, timestep=times, return_dict=False, **options)[0]
        if self.target == "noise":
            return F.mse_loss(found[:, : x.shape[1]], noise)
        ratio = kept / (1 - kept)
        weight = ratio.clamp_max(5.0) / (ratio + 1)
        error: Tensor = (weight * (found - (kept.sqrt() * noise - (1 - kept).sqrt() * x)).square()).mean()
        return error


class Rectified(nn.Module):
    """Flow matching from noise to data. A time is the sigmoid of a normal random number. The network gets the
    time, multiplied by the factor `times`.
    """

    def __init__(self, network: nn.Module, times: float = 1000.0) -> None:
        super().__init__()
        self.network, self.times = network, times

    def forward(self, x: Tensor, **options: Any) -> Tensor:
        sigma = torch.randn(len(x), device=x.device).sigmoid()
        noise = torch.randn_like(x)
        share = sigma.view(-1, *[1] * (x.dim() - 1))
        noisy = (1 - share) * x + share * noise
        found = self.network(noisy, timestep=sigma * self.times, return_dict=False, **options)[0]
        return F.mse_loss(found, noise - x)


IMAGES: Final = normal(ROWS, 4, 8, 8)
TEXTS: Final = normal(ROWS, 3, 8, seed=3)


@entry(ENTRIES, FAMILY, "UNet2DModel, noise of DDPM")
def unet() -> Training:
    network = UNet2DModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        attention_head_dim=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    return Training(Denoiser(network), lambda m, b: m(b["x"]), {"x": normal(ROWS, 3, 8, 8)}, batch=2)


def conditional() -> UNet2DConditionModel:
    """A small Stable Diffusion U-Net."""
    return UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=4,
        cross_attention_dim=8,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )


@entry(ENTRIES, FAMILY, "UNet2DConditionModel, velocity with weights of the ratio")
def velocity() -> Training:
    return Training(
        Denoiser(conditional(), "velocity"),
        lambda m, b: m(b["x"], encoder_hidden_states=b["text"]),
        {"x": IMAGES, "text": TEXTS},
        batch=2,
    )


@entry(ENTRIES, FAMILY, "ControlNet beside a frozen UNet2DConditionModel")
def control() -> Training:
    class Controlled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = conditional().requires_grad_(False)
            self.control = ControlNetModel.from_unet(
                self.network, conditioning_channels=3, conditioning_embedding_out_channels=(4, 8)
            )
            with torch.no_grad():  # not zero, so that all have gradients
                for p in self.control.parameters():
                    p.add_(torch.randn_like(p) * 0.02)

        def forward(self, x: Tensor, timestep: Tensor, return_dict: bool, text: Tensor, image: Tensor) -> Any:
            down, middle = self.control(x, timestep, text, image, return_dict=False)
            return self.network(
                x,
                timestep,
                text,
                down_block_additional_residuals=down,
                mid_block_additional_residual=middle,
                return_dict=return_dict,
            )

    return Training(
        Denoiser(Controlled()),
        lambda m, b: m(b["x"], text=b["text"], image=b["image"]),
        {"x": IMAGES, "text": TEXTS, "image": normal(ROWS, 3, 16, 16, seed=4)},
        batch=2,
    )


@entry(ENTRIES, FAMILY, "UNet1DModel")
def line() -> Training:
    network = UNet1DModel(
        sample_size=16,
        block_out_channels=(32, 32),
        down_block_types=("DownBlock1DNoSkip", "DownBlock1D"),
        up_block_types=("UpBlock1D", "UpBlock1DNoSkip"),
        extra_in_channels=64,
    )
    return Training(Denoiser(network), lambda m, b: m(b["x"]), {"x": normal(ROWS, 2, 16)}, batch=2)


@entry(ENTRIES, FAMILY, "DiTTransformer2DModel")
def dit() -> Training:
    network = DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        out_channels=8,
        num_layers=1,
        sample_size=8,
        num_embeds_ada_norm=TIMES,
        norm_num_groups=4,
    )
    data = {"x": IMAGES, "y": integers(0, 10, ROWS)}
    return Training(Denoiser(network), lambda m, b: m(b["x"], class_labels=b["y"]), data, batch=2)


@entry(ENTRIES, FAMILY, "PixArtTransformer2DModel")
def pixart() -> Training:
    network = PixArtTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        num_layers=1,
        cross_attention_dim=16,
        sample_size=8,
        caption_channels=8,
        norm_num_groups=4,
        use_additional_conditions=False,
    )
    none = {"resolution": None, "aspect_ratio": None}
    return Training(
        Denoiser(network),
        lambda m, b: m(b["x"], encoder_hidden_states=b["text"], added_cond_kwargs=none),
        {"x": IMAGES, "text": TEXTS},
        batch=2,
    )


@entry(ENTRIES, FAMILY, "SD3Transformer2DModel, flow matching")
def stable() -> Training:
    network = SD3Transformer2DModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=8,
        caption_projection_dim=16,
        pooled_projection_dim=8,
        pos_embed_max_size=8,
        qk_norm="rms_norm",
    )
    return Training(
        Rectified(network),
        lambda m, b: m(b["x"], encoder_hidden_states=b["text"], pooled_projections=b["pooled"]),
        {"x": IMAGES, "text": TEXTS, "pooled": normal(ROWS, 8, seed=4)},
        batch=2,
    )


@entry(ENTRIES, FAMILY, "FluxTransformer2DModel, flow matching")
def flux() -> Training:
    class Placed(nn.Module):
        """FLUX. The positions of image and text tokens are buffers."""

        def __init__(self) -> None:
            super().__init__()
            self.network = FluxTransformer2DModel(
                in_channels=4,
                num_layers=1,
                num_single_layers=1,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=8,
                pooled_projection_dim=8,
                axes_dims_rope=(4, 4, 8),
            )
            grid = torch.cartesian_prod(torch.zeros(1), torch.arange(4.0), torch.arange(4.0))
            self.register_buffer("image", grid)
            self.register_buffer("text", torch.zeros(3, 3))

        def forward(self, x: Tensor, **options: Any) -> Any:
            return self.network(x, img_ids=self.image, txt_ids=self.text, **options)

    return Training(
        Rectified(Placed(), times=1.0),
        lambda m, b: m(b["x"], encoder_hidden_states=b["text"], pooled_projections=b["pooled"]),
        {"x": normal(ROWS, 16, 4), "text": TEXTS, "pooled": normal(ROWS, 8, seed=4)},
        batch=2,
    )


@entry(ENTRIES, FAMILY, "SanaTransformer2DModel, flow matching")
def sana() -> Training:
    network = SanaTransformer2DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=8,
        num_layers=1,
        num_cross_attention_heads=2,
        cross_attention_head_dim=8,
        cross_attention_dim=16,
        caption_channels=8,
        sample_size=8,
    )
    return Training(
        Rectified(network),
        lambda m, b: m(b["x"], encoder_hidden_states=b["text"]),
        {"x": IMAGES, "text": TEXTS},
        batch=2,
    )


@entry(ENTRIES, FAMILY, "AuraFlowTransformer2DModel, flow matching")
def aura() -> Training:
    network = AuraFlowTransformer2DModel(
        sample_size=8,
        num_mmdit_layers=1,
        num_single_dit_layers=1,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=8,
        caption_projection_dim=16,
        pos_embed_max_size=16,
    )
    return Training(
        Rectified(network, times=1.0),
        lambda m, b: m(b["x"], encoder_hidden_states=b["text"]),
        {"x": IMAGES, "text": TEXTS},
        batch=2,
    )


@entry(ENTRIES, FAMILY, "WanTransformer3DModel of films, flow matching")
def wan() -> Training:
    network = WanTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=12,
        in_channels=4,
        out_channels=4,
        text_dim=8,
        freq_dim=16,
        ffn_dim=32,
        num_layers=1,
        rope_max_seq_len=16,
    )
    return Training(
        Rectified(network),
        lambda m, b: m(b["x"], encoder_hidden_states=b["text"]),
        {"x": normal(ROWS, 4, 2, 4, 4), "text": TEXTS},
        batch=2,
    )


@entry(ENTRIES, FAMILY, "UVit2DModel of masked codes")
def uvit() -> Training:
    class Masked(nn.Module):
        """aMUSEd: codes are masked at a random rate and predicted."""

        def __init__(self) -> None:
            super().__init__()
            self.network = UVit2DModel(
                hidden_size=16,
                cond_embed_dim=8,
                micro_cond_encode_dim=2,
                micro_cond_embed_dim=10,
                encoder_hidden_size=8,
                vocab_size=13,
                codebook_size=12,
                in_channels=16,
                block_out_channels=16,
                num_res_blocks=1,
                block_num_heads=2,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                sample_size=4,
            )

        def forward(self, codes: Tensor, text: Tensor, pooled: Tensor, micro: Tensor) -> Tensor:
            rate = torch.cos(torch.rand(len(codes), 1, 1, device=codes.device) * torch.pi / 2)
            hidden = torch.rand(codes.shape, device=codes.device) < rate
            scores = self.network(codes.masked_fill(hidden, 12), text, pooled, micro)
            return F.cross_entropy(scores, codes.masked_fill(~hidden, -100))

    return Training(
        Masked(),
        lambda m, b: m(b["codes"], b["text"], b["pooled"], b["micro"]),
        {
            "codes": integers(0, 12, ROWS, 4, 4),
            "text": TEXTS,
            "pooled": normal(ROWS, 8, seed=4),
            "micro": normal(ROWS, 5, seed=5).abs(),
        },
        batch=2,
    )
