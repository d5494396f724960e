"""Small convolutional networks from timm's functions and configurations."""

from __future__ import annotations

from typing import Any, Final

import timm
import torch.nn.functional as F
from timm.models import (
    ByoBlockCfg,
    ByobNet,
    ByoModelCfg,
    CspNet,
    EfficientNet,
    GhostNet,
    HighResolutionNet,
    NfCfg,
    NormFreeNet,
)
from timm.models._efficientnet_builder import decode_arch_def
from timm.models.cspnet import CspModelCfg, CspStagesCfg, CspStemCfg
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, Training, entry, normal
from tests.models.images import CLASSES, classifier, convolutional, sgd

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "timm"


def small(name: str, **options: Any) -> nn.Module:
    """A timm model without pretrained weights."""
    model: nn.Module = timm.create_model(name, pretrained=False, num_classes=CLASSES, **options)
    return model


def _residual(name: str, **options: Any) -> Training:
    widths = {"layers": (1, 1, 1, 1), "channels": (8, 16, 24, 32), "stem_width": 8}
    return convolutional(small(name, **widths | options))


@entry(ENTRIES, FAMILY, "SE-ResNet")
def squeeze_excite() -> Training:
    return _residual("seresnet18", block_args={"attn_layer": "se"})


@entry(ENTRIES, FAMILY, "ECA-ResNet, tiered stem")
def channel_attention() -> Training:
    return _residual("ecaresnet26t")


@entry(ENTRIES, FAMILY, "SK-ResNet")
def selective_kernels() -> Training:
    return _residual("skresnet18")


@entry(ENTRIES, FAMILY, "ResNeSt")
def split_attention() -> Training:
    return _residual("resnest14d")


@entry(ENTRIES, FAMILY, "Res2Net")
def hierarchical() -> Training:
    return _residual("res2net50_26w_4s")


@entry(ENTRIES, FAMILY, "ResNet with blur pooling and drop path")
def blurred() -> Training:
    return _residual("resnetblur18", drop_path_rate=0.1)


@entry(ENTRIES, FAMILY, "BiT ResNet v2, standardised weights")
def big_transfer() -> Training:
    model = timm.models.ResNetV2([1, 1, 1], (128, 128, 256), CLASSES, stem_chs=32, stem_type="fixed")
    return classifier(model)


@entry(ENTRIES, FAMILY, "NFNet")
def norm_free() -> Training:
    settings = NfCfg((1, 1, 1, 1), (16, 16, 32, 32), stem_type="deep_quad", stem_chs=16, group_size=8)
    settings.attn_layer, settings.attn_kwargs, settings.extra_conv = "se", {"rd_ratio": 0.5}, True
    settings.same_padding, settings.skipinit, settings.act_layer = True, True, "gelu"
    return classifier(NormFreeNet(settings, CLASSES), 64)


class KeyPoints(nn.Module):
    """Heat maps of two key points from a network's finest feature map."""

    def __init__(self, network: nn.Module, channels: int) -> None:
        super().__init__()
        self.network, self.last = network, nn.Conv2d(channels, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.network(x)[0])


@entry(ENTRIES, FAMILY, "HRNet, heat maps")
def high_resolution() -> Training:
    def stage(kind: str, *channels: int) -> dict[str, Any]:
        return {
            "num_modules": 1,
            "num_branches": len(channels),
            "block_type": kind,
            "num_blocks": (1,) * len(channels),
            "num_channels": channels,
            "fuse_method": "SUM",
        }

    settings = {
        "stem_width": 8,
        "stage1": stage("BOTTLENECK", 4),
        "stage2": stage("BASIC", 4, 8),
        "stage3": stage("BASIC", 4, 8, 8),
        "stage4": stage("BASIC", 4, 8, 8, 8),
    }
    model = KeyPoints(HighResolutionNet(settings, num_classes=0, head=""), 4)
    data = {"x": normal(ROWS, 3, 64, 64), "heat": normal(ROWS, 2, 16, 16)}
    return Training(model, lambda m, b: F.mse_loss(m(b["x"]), b["heat"]), data, sgd)


@entry(ENTRIES, FAMILY, "DLA")
def aggregated() -> Training:
    return convolutional(small("dla34", levels=[1, 1, 1, 2, 1, 1], channels=[8, 8, 16, 16, 32, 32]), batch=8)


@entry(ENTRIES, FAMILY, "CSPNet")
def cross_stage() -> Training:
    stages = CspStagesCfg((1, 1), (16, 32), bottle_ratio=0.5, expand_ratio=2.0, cross_linear=True)
    settings = CspModelCfg(CspStemCfg(16, 4, 7, pool="max"), stages)
    return convolutional(CspNet(settings, num_classes=CLASSES), 32)


@entry(ENTRIES, FAMILY, "TResNet")
def in_place() -> Training:
    return convolutional(small("tresnet_m", layers=[1, 1, 1, 1], width_factor=0.125))


@entry(ENTRIES, FAMILY, "RepVGG")
def reparameterised() -> Training:
    blocks = tuple(ByoBlockCfg("rep", 2, c, 2) for c in (8, 16))
    settings = ByoModelCfg(blocks, stem_type="rep", stem_chs=8, stem_pool="")
    return convolutional(ByobNet(settings, CLASSES), 32)


@entry(ENTRIES, FAMILY, "MobileOne")
def many_branches() -> Training:
    blocks = tuple(ByoBlockCfg("one", 1, c, 2, 1, block_kwargs={"num_conv_branches": 2}) for c in (8, 16))
    settings = ByoModelCfg(blocks, stem_type="one", stem_chs=8, stem_pool="")
    return convolutional(ByobNet(settings, CLASSES), 32)


@entry(ENTRIES, FAMILY, "GhostNet")
def ghosts() -> Training:
    settings = [[[3, 8, 8, 0, 1]], [[3, 24, 16, 0.25, 2]], [[5, 32, 16, 0, 1]]]
    model = GhostNet(settings, CLASSES, 1.0, drop_rate=0.2)
    return convolutional(model, 32)


@entry(ENTRIES, FAMILY, "MixNet, mixed kernels and same padding")
def mixed() -> Training:
    blocks = [["ds_r1_k3_s1_e1_c8"], ["ir_r1_k3.5_a1.1_p1.1_s2_e4_c16_se0.5_nsw"]]
    model = EfficientNet(decode_arch_def(blocks), CLASSES, 32, stem_size=8, pad_type="same")
    return convolutional(model, 32)


@entry(ENTRIES, FAMILY, "MobileNet v4, universal bottlenecks")
def universal() -> Training:
    blocks = [
        ["cn_r1_k3_s2_e1_c8"],
        ["uir_r1_a3_k3_s2_e3_c16", "mqa_r1_k3_h2_s1_v2_d8_c16", "uir_r1_a3_k3_s1_e2_c16"],
    ]
    model = timm.models.MobileNetV3(decode_arch_def(blocks), CLASSES, stem_size=8, num_features=32)
    return convolutional(model, 32)


@entry(ENTRIES, FAMILY, "ReXNet")
def expanding() -> Training:
    return convolutional(small("rexnet_100", width_mult=0.25, depth_mult=0.4, initial_chs=16, final_chs=60))


@entry(ENTRIES, FAMILY, "VoVNet")
def one_shot() -> Training:
    settings = {
        "stem_chs": [8, 8, 8],
        "stage_conv_chs": [8, 8, 8, 8],
        "stage_out_chs": [16, 16, 16, 16],
        "layer_per_block": 2,
        "block_per_stage": [1, 1, 1, 1],
        "residual": True,
        "depthwise": False,
        "attn": "ese",
    }
    return convolutional(timm.models.VovNet(settings, num_classes=CLASSES))


@entry(ENTRIES, FAMILY, "DPN")
def dual_path() -> Training:
    model = timm.models.DPN((1, 1, 1, 1), (4, 4, 4, 4), 8, 4, CLASSES, small=True, num_init_features=8)
    return convolutional(model)


@entry(ENTRIES, FAMILY, "ConvNeXt v2")
def response_norm() -> Training:
    return classifier(small("convnextv2_atto", depths=(1, 1, 1, 1), dims=(8, 16, 16, 16)))


@entry(ENTRIES, FAMILY, "ConvMixer")
def mixer() -> Training:
    model = timm.models.ConvMixer(16, 2, 5, 4, num_classes=CLASSES)
    return convolutional(model, 32)


@entry(ENTRIES, FAMILY, "InceptionNeXt")
def inception_next() -> Training:
    return convolutional(small("inception_next_atto", depths=(1, 1, 1, 1), dims=(16, 16, 16, 16)))


@entry(ENTRIES, FAMILY, "StarNet")
def stars() -> Training:
    return convolutional(timm.models.StarNet(8, [1, 1, 1], num_classes=CLASSES), 32)


@entry(ENTRIES, FAMILY, "FocalNet")
def focal() -> Training:
    return classifier(timm.models.FocalNet(num_classes=CLASSES, embed_dim=8, depths=(1, 1)))
