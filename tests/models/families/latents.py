"""Autoencoders from diffusers, trained to reconstruct their input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL, AutoencoderTiny, VQModel
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, normal

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "diffusers"
Batch = Mapping[str, Tensor]


@entry(ENTRIES, FAMILY, "AutoencoderKL")
def autoencoder() -> Training:
    network = AutoencoderKL(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
    )

    def loss(m: nn.Module, b: Batch) -> Tensor:
        assert isinstance(m, AutoencoderKL)
        found = m.encode(b["x"]).latent_dist
        mean, log_variance = found.mean, found.logvar
        z = mean + found.std * torch.randn_like(mean)
        rise = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum((1, 2, 3)).mean()
        error: Tensor = F.l1_loss(m.decode(z).sample, b["x"]) + 1e-3 * rise
        return error

    return Training(network, loss, {"x": normal(ROWS, 3, 8, 8).tanh()}, batch=2)


@entry(ENTRIES, FAMILY, "AutoencoderKL, sampled by its own distribution")
def sampled() -> Training:
    network = AutoencoderKL(block_out_channels=(8,), norm_num_groups=4)

    def loss(m: nn.Module, b: Batch) -> Tensor:
        assert isinstance(m, AutoencoderKL)
        found = m.encode(b["x"]).latent_dist
        error: Tensor = F.mse_loss(m.decode(found.sample()).sample, b["x"]) + 1e-3 * found.kl().mean()
        return error

    return Training(network, loss, {"x": normal(ROWS, 3, 8, 8).tanh()}, batch=2)


@entry(ENTRIES, FAMILY, "AutoencoderTiny")
def tiny() -> Training:
    network = AutoencoderTiny(
        encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
    )

    def loss(m: nn.Module, b: Batch) -> Tensor:
        assert isinstance(m, AutoencoderTiny)
        return F.mse_loss(m.decode(m.encode(b["x"]).latents).sample, b["x"])

    return Training(network, loss, {"x": normal(ROWS, 3, 8, 8).tanh()}, batch=2)


@entry(ENTRIES, FAMILY, "VQModel")
def codes() -> Training:
    network = VQModel(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
        num_vq_embeddings=12,
    )

    def loss(m: nn.Module, b: Batch) -> Tensor:
        found = m(b["x"])
        error: Tensor = F.mse_loss(found.sample, b["x"]) + found.commit_loss.mean()
        return error

    return Training(network, loss, {"x": normal(ROWS, 3, 8, 8).tanh()}, batch=2)
