"""Classifiers from torchvision, each with few blocks and channels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import torch.nn.functional as F
from torch import Tensor, nn
from torchvision import models
from torchvision.models import (
    efficientnet,
    inception,
    mobilenetv3,
    regnet,
    resnet,
    swin_transformer,
    vgg,
)
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.googlenet import BasicConv2d, Inception, InceptionAux

from tests.models.entry import ROWS, Entry, Training, entry, integers, normal
from tests.models.images import CLASSES, classifier, convolutional, sgd

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "torchvision"


def _residual(block: type[Any], **options: Any) -> Training:
    """The training of a ResNet with only the first two stages, of one block each. The other two stages are
    left out, because they have too many channels.
    """
    model = models.ResNet(block, [1, 1, 1, 1], CLASSES, **options)
    model.layer3 = model.layer4 = nn.Identity()
    model.fc = nn.Linear(128 * block.expansion, CLASSES)
    return convolutional(model, 32)


@entry(ENTRIES, FAMILY, "ResNet")
def residual() -> Training:
    return _residual(resnet.BasicBlock)


@entry(ENTRIES, FAMILY, "ResNeXt")
def grouped_residual() -> Training:
    return _residual(resnet.Bottleneck, groups=4, width_per_group=4)


@entry(ENTRIES, FAMILY, "Wide ResNet")
def wide_residual() -> Training:
    return _residual(resnet.Bottleneck, width_per_group=128, zero_init_residual=True)


@entry(ENTRIES, FAMILY, "DenseNet")
def dense() -> Training:
    return convolutional(models.DenseNet(4, (2, 2, 2, 2), 8, num_classes=CLASSES))


@entry(ENTRIES, FAMILY, "VGG with batch norm")
def very_deep() -> Training:
    features = vgg.make_layers([8, "M", 16, "M", 32, 32, "M"], batch_norm=True)
    model = models.VGG(features, CLASSES)
    model.avgpool = nn.AdaptiveAvgPool2d(2)
    model.classifier = nn.Sequential(
        *(nn.Linear(32 * 4, 32), nn.ReLU(True), nn.Dropout(), nn.Linear(32, 32), nn.ReLU(True)),
        *(nn.Dropout(), nn.Linear(32, CLASSES)),
    )
    return convolutional(model, 32)


@entry(ENTRIES, FAMILY, "AlexNet")
def alex() -> Training:
    model = models.AlexNet(CLASSES)
    model.avgpool = nn.AdaptiveAvgPool2d(1)
    model.classifier = nn.Sequential(nn.Dropout(), nn.Linear(256, 32), nn.ReLU(True), nn.Linear(32, CLASSES))
    return convolutional(model)


@entry(ENTRIES, FAMILY, "SqueezeNet")
def squeezed() -> Training:
    return convolutional(models.SqueezeNet("1_1", CLASSES), 48)


@entry(ENTRIES, FAMILY, "MobileNet v2")
def inverted_residual() -> Training:
    settings = [[1, 8, 1, 1], [6, 8, 2, 2], [6, 16, 1, 2]]
    return convolutional(models.MobileNetV2(CLASSES, 0.25, settings), 32)


@entry(ENTRIES, FAMILY, "MobileNet v3")
def hard_swish() -> Training:
    block = partial(mobilenetv3.InvertedResidualConfig, width_mult=1.0)
    settings = [
        block(8, 3, 16, 8, True, "RE", 2, 1),
        block(8, 3, 24, 16, False, "RE", 2, 1),
        block(16, 5, 32, 16, True, "HS", 1, 2),
    ]
    return convolutional(models.MobileNetV3(settings, 32, CLASSES))


@entry(ENTRIES, FAMILY, "EfficientNet")
def efficient() -> Training:
    block = partial(efficientnet.MBConvConfig, width_mult=1.0, depth_mult=1.0)
    settings = [block(1, 3, 1, 8, 8, num_layers=1), block(4, 5, 2, 8, 16, num_layers=2)]
    return convolutional(efficientnet.EfficientNet(settings, 0.2, 0.2, CLASSES, last_channel=32), 32)


@entry(ENTRIES, FAMILY, "EfficientNet v2")
def efficient_2() -> Training:
    settings = [
        efficientnet.FusedMBConvConfig(1, 3, 1, 8, 8, 1),
        efficientnet.FusedMBConvConfig(4, 3, 2, 8, 16, 1),
        efficientnet.MBConvConfig(4, 3, 2, 16, 24, 2),
    ]
    norm = partial(nn.BatchNorm2d, eps=1e-3)
    model = efficientnet.EfficientNet(settings, 0.0, 0.0, CLASSES, norm, last_channel=32)
    return convolutional(model, 32)


@entry(ENTRIES, FAMILY, "ShuffleNet v2")
def shuffled() -> Training:
    return convolutional(models.ShuffleNetV2([2, 2, 1], [8, 16, 24, 32, 48], CLASSES))


@entry(ENTRIES, FAMILY, "MNASNet")
def searched() -> Training:
    return convolutional(models.MNASNet(0.1, CLASSES))


@entry(ENTRIES, FAMILY, "RegNet Y")
def designed() -> Training:
    settings = regnet.BlockParams.from_init_params(4, 8, 8.0, 2.5, 4, se_ratio=0.25)
    return convolutional(models.RegNet(settings, CLASSES, stem_width=8))


@entry(ENTRIES, FAMILY, "ConvNeXt")
def modern() -> Training:
    settings = [CNBlockConfig(8, 16, 1), CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 1)]
    return classifier(models.ConvNeXt(settings, 0.1, num_classes=CLASSES))


@entry(ENTRIES, FAMILY, "ViT")
def vision_transformer() -> Training:
    return classifier(models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=CLASSES))


@entry(ENTRIES, FAMILY, "ViT with a convolutional stem")
def vision_transformer_stem() -> Training:
    stem = models.vision_transformer.ConvStemConfig
    model = models.VisionTransformer(
        *(32, 8, 1, 2, 16, 32, 0.1),
        num_classes=CLASSES,
        representation_size=16,
        conv_stem_configs=[stem(8, 3, 2), stem(8, 3, 2), stem(8, 3, 2)],
    )
    return classifier(model)


@entry(ENTRIES, FAMILY, "Swin")
def shifted_windows() -> Training:
    model = models.SwinTransformer(
        [4, 4], 8, [2, 2], [2, 2], [4, 4], num_classes=CLASSES, stochastic_depth_prob=0.1
    )
    return classifier(model)


@entry(ENTRIES, FAMILY, "Swin v2")
def shifted_windows_2() -> Training:
    model = models.SwinTransformer(
        *([4, 4], 8, [2, 2], [2, 2], [4, 4]),
        num_classes=CLASSES,
        stochastic_depth_prob=0.0,
        block=swin_transformer.SwinTransformerBlockV2,
        downsample_layer=swin_transformer.PatchMergingV2,
    )
    return classifier(model)


@entry(ENTRIES, FAMILY, "MaxViT")
def multi_axis() -> Training:
    return classifier(models.MaxVit((32, 32), 8, 4, [8, 16], [1, 1], 4, 0.0, num_classes=CLASSES))


class ThinConvolution(BasicConv2d):
    """A convolution of GoogLeNet with an eighth of the channels."""

    def __init__(self, before: int, after: int, **options: Any) -> None:
        super().__init__(before if before == 3 else before // 8, after // 8, **options)


class ThinBranch(inception.BasicConv2d):
    """A convolution of Inception v3 with a sixteenth of the channels."""

    def __init__(self, before: int, after: int, **options: Any) -> None:
        super().__init__(before if before == 3 else before // 16, after // 16, **options)


def _with_auxiliary(model: nn.Module, batch: Mapping[str, Tensor], *weights: float) -> Tensor:
    """The loss of the logits plus the weighted losses of auxiliary heads."""
    first, *others = model(batch["x"])
    loss = F.cross_entropy(first, batch["y"])
    for weight, logits in zip(weights, others, strict=True):
        loss = loss + weight * F.cross_entropy(logits, batch["y"])
    return loss


@entry(ENTRIES, FAMILY, "GoogLeNet, auxiliary heads")
def googles() -> Training:
    blocks = [
        ThinConvolution,
        partial(Inception, conv_block=ThinConvolution),
        partial(InceptionAux, conv_block=ThinConvolution),
    ]
    model = models.GoogLeNet(CLASSES, init_weights=False, blocks=blocks, dropout=0.0, dropout_aux=0.0)
    model.fc = nn.Linear(128, CLASSES)
    for head in (model.aux1, model.aux2):
        head.fc1 = nn.Linear(16 * 16, 32)
        head.fc2 = nn.Linear(32, CLASSES)
    data = {"x": normal(ROWS, 3, 64, 64), "y": integers(0, CLASSES, ROWS)}
    return Training(model, lambda m, b: _with_auxiliary(m, b, 0.3, 0.3), data, sgd)


@entry(ENTRIES, FAMILY, "Inception v3, auxiliary head")
def inceptions() -> Training:
    parts = (
        *(inception.InceptionA, inception.InceptionB, inception.InceptionC, inception.InceptionD),
        *(inception.InceptionE, inception.InceptionAux),
    )
    blocks = [ThinBranch, *(partial(part, conv_block=ThinBranch) for part in parts)]
    model = models.Inception3(CLASSES, inception_blocks=blocks, init_weights=False, dropout=0.0)
    model.fc = nn.Linear(128, CLASSES)
    model.AuxLogits.fc = nn.Linear(48, CLASSES)
    data = {"x": normal(6, 3, 299, 299), "y": integers(0, CLASSES, 6)}
    return Training(model, lambda m, b: _with_auxiliary(m, b, 0.4), data, sgd, batch=2)
