"""Small transformers and MLPs from timm's functions and configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import timm
import torch.nn.functional as F
from timm.layers import GatedMlp, GroupNorm1
from timm.models import (
    ByobNet,
    ByoModelCfg,
    MaxxVit,
    MaxxVitCfg,
    MultiScaleVit,
    MultiScaleVitCfg,
    metaformer,
    mlp_mixer,
)
from timm.models.maxxvit import MaxxVitConvCfg, MaxxVitTransformerCfg
from timm.models.mobilevit import _inverted_residual_block, _mobilevit_block, _mobilevitv2_block
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal
from tests.models.families.timm_models import FAMILY, small
from tests.models.images import CLASSES, classifier, convolutional

ENTRIES: Final[list[Entry]] = []
SIZES: Final = {"img_size": 32, "patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 2}


def _plain(name: str, **options: Any) -> Training:
    """The training of a single-stage model on 16 patches."""
    return classifier(small(name, **SIZES | options))


def _both_heads(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The loss of a model with a second head for its teacher's labels."""
    first, second = model(batch["x"])
    return F.cross_entropy(first, batch["y"]) + F.cross_entropy(second, batch["taught"])


def _distilled(model: nn.Module, size: int = 32, **options: Any) -> Training:
    """The training of a model that returns the outputs of both heads."""
    model.set_distilled_training(True)  # type: ignore[operator]
    labels = {"y": integers(0, CLASSES, ROWS), "taught": integers(0, CLASSES, ROWS, seed=3)}
    return Training(model, _both_heads, {"x": normal(ROWS, 3, size, size), **labels}, **options)


@entry(ENTRIES, FAMILY, "DeiT, distilled")
def data_efficient() -> Training:
    return _distilled(small("deit_tiny_distilled_patch16_224", **SIZES))


@entry(ENTRIES, FAMILY, "DeiT III, layer scale and drop path")
def data_efficient_3() -> Training:
    return _plain("deit3_small_patch16_224", drop_path_rate=0.1)


@entry(ENTRIES, FAMILY, "ViT with registers, average pooling and patch dropout")
def registers() -> Training:
    options = {"reg_tokens": 4, "class_token": False, "global_pool": "avg", "patch_drop_rate": 0.25}
    return _plain("vit_tiny_patch16_224", **options)


@entry(ENTRIES, FAMILY, "ViT of SigLIP, attention pooling")
def attention_pooling() -> Training:
    return _plain("vit_base_patch16_siglip_gap_224", global_pool="map", qk_norm=True)


@entry(ENTRIES, FAMILY, "ViT with relative positions")
def relative_positions() -> Training:
    return _plain("vit_relpos_small_patch16_224")


@entry(ENTRIES, FAMILY, "BEiT")
def beit() -> Training:
    return _plain("beit_base_patch16_224")


@entry(ENTRIES, FAMILY, "EVA-02")
def eva() -> Training:
    return _plain("eva02_tiny_patch14_224", ref_feat_shape=(4, 4))


@entry(ENTRIES, FAMILY, "CaiT")
def class_attention() -> Training:
    return _plain("cait_xxs24_224")


@entry(ENTRIES, FAMILY, "XCiT")
def cross_covariance() -> Training:
    return _plain("xcit_nano_12_p8_224")


@entry(ENTRIES, FAMILY, "ConViT")
def gated_positions() -> Training:
    """The model runs once first, because its position buffers get their shape from the first images."""
    training = _plain("convit_tiny", local_up_to_layer=1)
    training.model(normal(1, 3, 32, 32))
    return training


@entry(ENTRIES, FAMILY, "TNT")
def nested_tokens() -> Training:
    model = small(
        "tnt_s_patch16_224",
        img_size=32,
        patch_size=8,
        embed_dim=16,
        inner_dim=8,
        depth=2,
        num_heads_inner=2,
        num_heads_outer=2,
    )
    return classifier(model)


@entry(ENTRIES, FAMILY, "NaFlexViT")
def native_resolution() -> Training:
    model = timm.models.NaFlexVit(
        timm.models.NaFlexVitCfg(
            *(8, 16, 2, 2),
            init_values=1e-5,
            reg_tokens=2,
            fc_norm=True,
            pos_embed_grid_size=(4, 4),
        ),
        num_classes=CLASSES,
    )
    return classifier(model)


@entry(ENTRIES, FAMILY, "PiT")
def pooled() -> Training:
    model = small(
        "pit_ti_224", img_size=32, patch_size=8, stride=4, base_dims=[8, 8], depth=[1, 1], heads=[2, 2]
    )
    return classifier(model)


@entry(ENTRIES, FAMILY, "PVT v2")
def pyramid() -> Training:
    model = small(
        *("pvt_v2_b0",),
        depths=(1, 1, 1, 1),
        embed_dims=(8, 16, 16, 16),
        num_heads=(1, 2, 2, 2),
    )
    return classifier(model)


@entry(ENTRIES, FAMILY, "Twins SVT")
def twins() -> Training:
    model = small(
        "twins_svt_small",
        img_size=64,
        embed_dims=[8, 16, 16, 16],
        num_heads=[1, 2, 2, 2],
        depths=[2, 2, 2, 1],
        wss=[4, 4, 2, 2],
    )
    return classifier(model, 64)


@entry(ENTRIES, FAMILY, "CrossViT")
def crossed() -> Training:
    model = small(
        "crossvit_tiny_240",
        img_size=48,
        img_scale=(1.0, 2 / 3),
        patch_size=[12, 8],
        embed_dim=[8, 16],
        depth=[[1, 1, 0]],
        num_heads=[2, 2],
    )
    return classifier(model, 48)


@entry(ENTRIES, FAMILY, "Hiera")
def hiera() -> Training:
    model = small(
        "hiera_tiny_224",
        img_size=(64, 64),
        embed_dim=8,
        stages=(1, 1, 1),
        q_pool=2,
        mask_unit_size=(4, 4),
        mask_unit_attn=(True, True, False),
    )
    return classifier(model, 64)


@entry(ENTRIES, FAMILY, "VOLO, outlook attention")
def outlook() -> Training:
    model = timm.models.VOLO(
        (1, 1, 1, 1),
        64,
        num_classes=CLASSES,
        embed_dims=(8, 16, 16, 16),
        num_heads=(2, 2, 2, 2),
        stem_hidden_dim=8,
    )
    return classifier(model, 64)


@entry(ENTRIES, FAMILY, "LeViT, distilled")
def levit() -> Training:
    model = small(
        *("levit_128s",), img_size=64, embed_dim=(16, 16), key_dim=8, num_heads=(2, 2), depth=(1, 1)
    )
    return _distilled(model, 64)


@entry(ENTRIES, FAMILY, "Swin v2, cosine attention")
def swin_2() -> Training:
    sizes = {"embed_dim": 8, "depths": (2, 2), "num_heads": (2, 2), "window_size": 4}
    return classifier(small("swinv2_tiny_window8_256", img_size=32, **sizes))


@entry(ENTRIES, FAMILY, "DaViT")
def dual_attention() -> Training:
    model = small("davit_tiny", depths=(1, 1), embed_dims=(8, 16), num_heads=(2, 2), window_size=4)
    return classifier(model)


@entry(ENTRIES, FAMILY, "MViT v2")
def multi_scale() -> Training:
    settings = MultiScaleVitCfg((1, 1), 8, 1, stride_q=((1, 1), (2, 2)), stride_kv_adaptive=(2, 2))
    return classifier(MultiScaleVit(settings, (32, 32), num_classes=CLASSES))


def _maxx(kind: tuple[Any, ...], **options: Any) -> Training:
    transformer = MaxxVitTransformerCfg(dim_head=8, window_size=(4, 4), **options)
    settings = MaxxVitCfg((8, 16), (1, 1), kind, 8, conv_cfg=MaxxVitConvCfg(), transformer_cfg=transformer)
    return convolutional(MaxxVit(settings, 32, num_classes=CLASSES), 32)


@entry(ENTRIES, FAMILY, "CoAtNet")
def convolution_attention() -> Training:
    return _maxx(("C", "T"))


@entry(ENTRIES, FAMILY, "MaxxViT, relative positions by a perceptron")
def maxx() -> Training:
    return _maxx(("M", "M"), rel_pos_type="mlp", rel_pos_dim=16)


def _meta(**options: Any) -> Training:
    """The training of a MetaFormer with four stages."""
    model = timm.models.MetaFormer(num_classes=CLASSES, depths=(1, 1, 1, 1), dims=(8, 16, 32, 32), **options)
    return classifier(model)


@entry(ENTRIES, FAMILY, "PoolFormer")
def pools() -> Training:
    return _meta(
        downsample_norm=None,
        mlp_act=nn.GELU,
        mlp_bias=True,
        norm_layers=GroupNorm1,
        layer_scale_init_values=1e-5,
        res_scale_init_values=None,
        use_mlp_head=False,
    )


@entry(ENTRIES, FAMILY, "CAFormer")
def convolutions_before_attention() -> Training:
    return _meta(
        token_mixers=[metaformer.SepConv] * 2 + [metaformer.Attention] * 2,
        norm_layers=[metaformer.LayerNorm2dNoBias] * 2 + [metaformer.LayerNormNoBias] * 2,
        drop_path_rate=0.1,
    )


@entry(ENTRIES, FAMILY, "EfficientFormer, distilled")
def efficient() -> Training:
    """The last stage must have 7 x 7 positions, so three of the four stages do not downsample."""
    model = timm.models.EfficientFormer(
        (1, 1, 1, 2), (8, 16, 16, 16), num_classes=CLASSES, downsamples=(False, True, False, False), num_vit=1
    )
    return _distilled(model, 56)


@entry(ENTRIES, FAMILY, "MobileViT")
def mobile() -> Training:
    block = _mobilevit_block(1, 16, 2, transformer_dim=16, transformer_depth=1, patch_size=2, br=2.0)
    blocks = (_inverted_residual_block(1, 8, 1, 2.0), block)
    settings = ByoModelCfg(blocks, stem_chs=8, stem_pool="", downsample="", act_layer="silu", num_features=32)
    return convolutional(ByobNet(settings, CLASSES), 32)


@entry(ENTRIES, FAMILY, "MobileViT v2")
def mobile_2() -> Training:
    blocks = (_inverted_residual_block(1, 8, 1, 2.0), _mobilevitv2_block(1, 16, 2, transformer_depth=1))
    settings = ByoModelCfg(blocks, stem_chs=8, stem_pool="", downsample="", act_layer="silu")
    return convolutional(ByobNet(settings, CLASSES), 32)


@entry(ENTRIES, FAMILY, "FastViT")
def fast() -> Training:
    model = small("fastvit_sa12", layers=(1, 1, 1, 1), embed_dims=(8, 16, 16, 32), mlp_ratios=(2, 2, 2, 2))
    return convolutional(model)


@entry(ENTRIES, FAMILY, "EdgeNeXt")
def edges() -> Training:
    return classifier(
        small("edgenext_xx_small", depths=(1, 1, 1, 1), dims=(8, 16, 16, 16), heads=(2, 2, 2, 2)), 64
    )


@entry(ENTRIES, FAMILY, "EfficientViT, linear attention")
def linear_attention() -> Training:
    model = timm.models.EfficientVit(
        widths=(8, 8, 16, 16, 16),
        depths=(1, 1, 1, 1, 1),
        head_dim=8,
        head_widths=(32, 32),
        num_classes=CLASSES,
    )
    return convolutional(model)


@entry(ENTRIES, FAMILY, "MLP-Mixer")
def perceptrons() -> Training:
    return _mixing()


def _mixing(**options: Any) -> Training:
    model = timm.models.MlpMixer(CLASSES, 32, patch_size=8, num_blocks=2, embed_dim=16, **options)
    return classifier(model)


@entry(ENTRIES, FAMILY, "ResMLP")
def residual_perceptrons() -> Training:
    return _mixing(block_layer=mlp_mixer.ResBlock, mlp_ratio=4, norm_layer=mlp_mixer.Affine)


@entry(ENTRIES, FAMILY, "gMLP")
def gated_perceptrons() -> Training:
    return _mixing(block_layer=mlp_mixer.SpatialGatingBlock, mlp_ratio=6, mlp_layer=GatedMlp)


@entry(ENTRIES, FAMILY, "Sequencer, bidirectional LSTM")
def sequencer() -> Training:
    model = timm.models.Sequencer2d(
        CLASSES,
        32,
        layers=(1, 1),
        patch_sizes=(8, 1),
        embed_dims=(16, 16),
        hidden_sizes=(4, 4),
        mlp_ratios=(2.0, 2.0),
    )
    return classifier(model)
