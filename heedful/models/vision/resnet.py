"""ResNet: the lectures' convolutional baseline (He et al., 2016)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor, nn

from heedful.blocks.convolutions import Convolved, Residual
from heedful.models.encoder_protocol import ImageEncoder
from heedful.models.family import Family
from heedful.models.specs import Count, Stages
from heedful.models.vision.image_spec import ClassifierSpec, standard

DEPTHS = [2, 2, 2, 2]


class ResNetSpec(ClassifierSpec):
    """Numbers and words of a ResNet. Width is that of the first stage; each further one doubles it."""

    sizes: ClassVar[dict[str, dict[str, Any]]] = {
        "18": {"depths": [2, 2, 2, 2]},
        "34": {"depths": [3, 4, 6, 3]},
        "50": {"depths": [3, 4, 6, 3], "block": "bottleneck"},
    }
    family: Literal["resnet"] = "resnet"
    width: Count = 64
    """The number of channels of the first stage; each stage doubles it."""
    depths: Stages = DEPTHS
    """The number of blocks in each stage."""
    block: Literal["basic", "bottleneck"] = "basic"
    """The kind of residual block: `basic` (two convolutions) or `bottleneck` (three)."""
    stem: Literal["large", "small"] = "large"
    """The first layers: `large` halves the image twice; `small` keeps its size, for small images."""

    @model_validator(mode="after")
    def _parts_can_be_made(self) -> Self:
        with torch.device("meta"):
            stages(self), standard(self)
        return self


def stages(spec: ResNetSpec) -> nn.Sequential:
    """All blocks, stage by stage; each stage but the first halves the image."""
    made: list[nn.Module] = []
    before = spec.width
    for at, depth in enumerate(spec.depths):
        blocks = []
        for place in range(depth):
            inner, by = spec.width << at, 2 if at and not place else 1
            basic = ((inner, 3, by), (inner, 3, 1))
            steps = basic if spec.block == "basic" else ((inner, 1, 1), (inner, 3, by), (4 * inner, 1, 1))
            blocks.append(Residual(before, steps))
            before = steps[-1][0]
        made.append(nn.Sequential(*blocks))
    return nn.Sequential(*made)


class ResNet(ImageEncoder):
    """Reads an image by convolutions, stage by stage at half the size, and says of which class it is."""

    def __init__(self, spec: ResNetSpec) -> None:
        super().__init__()
        s = self.spec = spec
        self.scale = standard(s) or nn.Identity()
        large = s.stem == "large"
        self.stem = Convolved(s.channels, s.width, 7 if large else 3, 2 if large else 1)
        self.shrink = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        self.stages = stages(s)
        self.outputs = s.head(self.width)

    def forward(self, images: Tensor) -> Tensor:  # B C H W -> B K
        return self.outputs(self.features(images).mean((2, 3)))

    @property
    def width(self) -> int:
        return self.spec.width * (4 if self.spec.block == "bottleneck" else 1) << (len(self.spec.depths) - 1)

    def features(self, images: Tensor) -> Tensor:
        """What the last stage makes of an image: B C H W -> B M h w."""
        return self.stages(self.shrink(self.stem(self.scale(images))))


FAMILY = Family(
    ResNetSpec, ResNet, {"channels": 3, "high": 16, "wide": 16, "classes": 3}, "heedful.models.cases:Pictures"
)
