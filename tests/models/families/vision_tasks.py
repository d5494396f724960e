"""Segmentation, video, optical flow and detection from torchvision, each with a small network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision import ops
from torchvision.models import video
from torchvision.models.detection.retinanet import RetinaNetHead
from torchvision.models.optical_flow.raft import BottleneckBlock, ResidualBlock, _raft
from torchvision.models.segmentation import FCN, LRASPP, DeepLabV3
from torchvision.models.segmentation.deeplabv3 import DeepLabHead
from torchvision.models.segmentation.fcn import FCNHead
from torchvision.models.video import resnet as video_resnet
from torchvision.models.video.mvit import MSBlockConfig

from tests.models.entry import ROWS, Entry, Training, adamw, entry, integers, normal
from tests.models.images import CLASSES, sgd

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "torchvision"


class Features(nn.Module):
    """Two feature maps, under the names `first` and `second`: one at a quarter of the image's size, the other
    at an eighth.
    """

    def __init__(self, first: str, second: str, channels: int = 16) -> None:
        super().__init__()
        self.names = first, second
        block = partial(ops.Conv2dNormActivation, kernel_size=3, stride=2)
        self.first = nn.Sequential(block(3, 8), block(8, channels))
        self.second = block(channels, channels)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        early = self.first(x)
        return dict(zip(self.names, (early, self.second(early))))


def _pixels(model: nn.Module) -> Training:
    """The training with a cross-entropy over labelled pixels. If the model has an auxiliary head, half of
    that head's cross-entropy is added.
    """

    def objective(m: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        found = m(batch["x"])
        loss = F.cross_entropy(found["out"], batch["y"], ignore_index=255)
        if "aux" in found:
            loss = loss + 0.5 * F.cross_entropy(found["aux"], batch["y"], ignore_index=255)
        return loss

    labels = integers(0, CLASSES + 1, ROWS, 32, 32)
    data = {"x": normal(ROWS, 3, 32, 32), "y": labels.where(labels < CLASSES, 255)}
    return Training(model, objective, data, sgd)


@entry(ENTRIES, FAMILY, "FCN, auxiliary head")
def fully_convolutional() -> Training:
    return _pixels(FCN(Features("aux", "out"), FCNHead(16, CLASSES), FCNHead(16, CLASSES)))


@entry(ENTRIES, FAMILY, "DeepLab v3")
def atrous() -> Training:
    return _pixels(DeepLabV3(Features("aux", "out"), DeepLabHead(16, CLASSES, (1, 2, 3))))


@entry(ENTRIES, FAMILY, "LR-ASPP")
def reduced() -> Training:
    return _pixels(LRASPP(Features("low", "high"), 16, 16, CLASSES, 16))


def _clips(model: nn.Module, frames: int = 4, size: int = 16, **options: Any) -> Training:
    data = {"x": normal(ROWS, 3, frames, size, size), "y": integers(0, CLASSES, ROWS)}
    return Training(model, lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), data, **options)


def _video_resnet(stem: Any, *convolutions: Any) -> Training:
    """The training of a video ResNet with the first two of four stages."""
    four = [*convolutions, *convolutions[-1:] * 2]
    model = video.VideoResNet(video_resnet.BasicBlock, four, [1, 1, 1, 1], stem, CLASSES)
    model.layer3 = model.layer4 = nn.Identity()
    model.fc = nn.Linear(128, CLASSES)
    return _clips(model, optimiser=sgd)


@entry(ENTRIES, FAMILY, "R3D")
def three_axes() -> Training:
    return _video_resnet(video_resnet.BasicStem, *[video_resnet.Conv3DSimple] * 2)


@entry(ENTRIES, FAMILY, "MC3")
def mixed_convolutions() -> Training:
    return _video_resnet(video_resnet.BasicStem, video_resnet.Conv3DSimple, video_resnet.Conv3DNoTemporal)


@entry(ENTRIES, FAMILY, "R(2+1)D")
def factored() -> Training:
    return _video_resnet(video_resnet.R2Plus1dStem, *[video_resnet.Conv2Plus1D] * 2)


@entry(ENTRIES, FAMILY, "Swin of video")
def video_swin() -> Training:
    model = video.swin_transformer.SwinTransformer3d(
        [2, 4, 4], 8, [2, 1], [2, 2], [2, 2, 2], num_classes=CLASSES, stochastic_depth_prob=0.0
    )
    return _clips(model)


@entry(ENTRIES, FAMILY, "MViT v2 of video")
def video_multi_scale() -> Training:
    blocks = [
        MSBlockConfig(1, 8, 8, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 2, 2]),
        MSBlockConfig(2, 8, 16, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 1, 1]),
    ]
    model = video.MViT(
        *((16, 16), 4, blocks, True, False, True, True),
        dropout=0.0,
        num_classes=CLASSES,
        patch_embed_kernel=(3, 3, 3),
        patch_embed_stride=(2, 2, 2),
        patch_embed_padding=(1, 1, 1),
    )
    return _clips(model)


def _flow(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """RAFT's sequence loss: later updates count more."""
    updates = model(batch["first"], batch["second"], num_flow_updates=2)
    weights = [0.8 ** (len(updates) - 1 - i) for i in range(len(updates))]
    losses = [weight * (flow - batch["flow"]).abs().mean() for weight, flow in zip(weights, updates)]
    return torch.stack(losses).sum()


@entry(ENTRIES, FAMILY, "RAFT, optical flow")
def optical_flow() -> Training:
    model = _raft(
        feature_encoder_layers=(8, 8, 8, 8, 16),
        feature_encoder_block=BottleneckBlock,
        feature_encoder_norm_layer=nn.InstanceNorm2d,
        context_encoder_layers=(8, 8, 8, 8, 16),
        context_encoder_block=ResidualBlock,
        context_encoder_norm_layer=nn.BatchNorm2d,
        corr_block_num_levels=2,
        corr_block_radius=1,
        motion_encoder_corr_layers=(8,),
        motion_encoder_flow_layers=(8, 8),
        motion_encoder_out_channels=8,
        recurrent_block_hidden_state_size=8,
        recurrent_block_kernel_size=((1, 5), (5, 1)),
        recurrent_block_padding=((0, 2), (2, 0)),
        flow_head_hidden_size=8,
        use_mask_predictor=True,
    )
    images = {"first": normal(ROWS, 3, 32, 32), "second": normal(ROWS, 3, 32, 32, seed=3)}
    return Training(model, _flow, images | {"flow": normal(ROWS, 2, 32, 32, seed=4)}, adamw, batch=2)


class Detector(nn.Module):
    """RetinaNet on a pyramid of two levels: logits and box offsets of each anchor."""

    def __init__(self) -> None:
        super().__init__()
        self.features = Features("0", "1")
        self.pyramid = ops.FeaturePyramidNetwork([16, 16], 16)
        self.head = RetinaNetHead(16, 2, CLASSES)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.head(list(self.pyramid(self.features(x)).values()))
        return found


def generalised_iou(boxes: Tensor, wanted: Tensor) -> Tensor:
    """1 - GIoU, box by box."""

    def area(first: Tensor, last: Tensor) -> Tensor:
        return (last - first).clamp(min=0).prod(-1)

    (a, b), (c, d) = boxes.split(2, -1), wanted.split(2, -1)
    both, hull = (
        area(torch.maximum(a, c), torch.minimum(b, d)),
        area(torch.minimum(a, c), torch.maximum(b, d)),
    )
    either = area(a, b) + area(c, d) - both
    return 1 - both / (either + 1e-7) + (hull - either) / (hull + 1e-7)


def _detector(loss_of_boxes: Callable[[Tensor, Tensor], Tensor]) -> Training:
    """The training on the focal loss of each anchor's class, and on a box loss for anchors with an object."""

    def objective(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        found = model(batch["x"])
        is_object = batch["label"] < CLASSES
        wanted = F.one_hot(batch["label"], CLASSES + 1)[..., :CLASSES].float()
        focal = ops.sigmoid_focal_loss(found["cls_logits"], wanted, reduction="sum")
        corner, size = found["bbox_regression"].split(2, -1)
        boxes = torch.cat([corner, corner + F.softplus(size)], -1)
        apart = loss_of_boxes(boxes, batch["box"]) * is_object
        return (focal + apart.sum()) / is_object.sum().clamp(min=1)

    anchors = 2 * (8 * 8 + 4 * 4)
    corner = normal(ROWS, anchors, 2)
    data = {
        "x": normal(ROWS, 3, 32, 32),
        "label": integers(0, 2 * CLASSES, ROWS, anchors).clamp(max=CLASSES),
        "box": torch.cat([corner, corner + 0.5 + normal(ROWS, anchors, 2, seed=3).abs()], -1),
    }
    return Training(Detector(), objective, data, batch=2)


@entry(ENTRIES, FAMILY, "RetinaNet, anchors assigned in the data set")
def detection() -> Training:
    return _detector(generalised_iou)


@entry(ENTRIES, FAMILY, "RetinaNet with the library's GIoU")
def detection_of_the_library() -> Training:
    return _detector(ops.generalized_box_iou_loss)
