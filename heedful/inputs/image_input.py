"""Images as inputs: patches, the learned tokens before them, and where each stands; image processors of others."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.blocks.block import Dropout
from heedful.inputs.grids import GridPosition, Shape
from heedful.inputs.patches import Patches

Sides = tuple[int, int]  # height and width
LARGEST = 1 << 16  # pixels along a side
FILTERS = "nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"  # by PIL's number
BILINEAR, BICUBIC = 2, 3


class Standard(nn.Module):
    """Each channel less its mean, divided by its deviation: B C H W -> B C H W."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        super().__init__()
        if len(mean) != len(deviation) or min(deviation) <= 0:
            raise ValueError("a mean and a deviation above 0 are wanted for each channel")
        self.register_buffer("mean", torch.tensor(mean), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        return (images.to(self.mean.dtype) - self.mean[:, None, None]) / self.deviation[:, None, None]


class Images(nn.Module):
    """Numbers of each channel and pixel become tokens, a class token first where there is one: B C H W -> B T M.

    `scale` takes the numbers first: it knows the mean and the deviation of each channel.
    """

    def __init__(
        self,
        stem: Patches,
        width: int,
        position: GridPosition,
        leading: int = 1,
        scale: Standard | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.scale = scale or nn.Identity()
        self.stem, self.position, self.drop = stem, position, Dropout(dropout)
        self.leading = nn.Parameter(torch.randn(leading, width) * 0.02) if leading else None

    def shape(self, images: Tensor) -> Shape:
        """How many rows and columns of patches images have."""
        return self.stem.shape(*images.shape[-2:])

    def forward(self, images: Tensor, hidden: Tensor | None = None, blank: Tensor | None = None) -> Tensor:
        """The tokens; `blank` (M) stands in the place of those patches that are `hidden` (B P)."""
        shape = self.shape(images)
        x = self.stem(self.scale(images)).flatten(2).transpose(1, 2)
        if hidden is not None and blank is not None:
            x = torch.where(hidden[:, :, None], blank.to(x.dtype), x)
        if self.leading is not None:
            x = torch.cat((self.leading.to(x.dtype).expand(len(x), -1, -1), x), 1)
        return self.drop(self.position(x, shape))


class Processor(ABC):
    """Preprocessing of a picture before a model sees it: it is resized, and its middle is cut out."""

    resample: int  # the number of PIL's filter

    def check(self, sides: dict[str, int | None]) -> None:
        """Refuses sides that no picture has, and filters that PIL has not."""
        for name, side in sides.items():
            if side is not None and not 0 < side <= LARGEST:
                raise ValueError(f"{name} is {side}; choose 1 to {LARGEST:,} pixels")
        if not 0 <= self.resample < len(FILTERS):
            raise ValueError(f"resample is {self.resample}; choose 0 to {len(FILTERS) - 1}, as PIL numbers its filters")

    @property
    @abstractmethod
    def shape(self) -> Sides:
        """The height and the width of every picture in the end."""

    @abstractmethod
    def resized(self, high: int, wide: int) -> Sides:
        """The height and the width that a picture is resized to."""

    def before(self, spare: int) -> int:
        """How many of the pixels that a crop leaves out lie before it; below 0, so many are added in black."""
        return spare // 2

    @abstractmethod
    def keys(self) -> dict[str, Any]:
        """The same as keys of a preprocessor_config.json."""


@dataclass(frozen=True)
class TransformersProcessor(Processor):
    """An image processor of Hugging Face's transformers: to a height and width or a shorter side, then a centre crop.

    A longer side bounds what becomes of the shorter one. Of what is not given, nothing is done.
    """

    high: int | None = None
    wide: int | None = None
    shorter: int | None = None
    longer: int | None = None
    resample: int = BILINEAR
    crop_high: int | None = None
    crop_wide: int | None = None

    def __post_init__(self) -> None:
        self.check({key: value for key, value in vars(self).items() if key != "resample"})
        if any(
            (one is None) != (two is None) for one, two in ((self.high, self.wide), (self.crop_high, self.crop_wide))
        ):
            raise ValueError("a height and a width go together; give both or none")
        if not (self.high or self.crop_high):
            raise ValueError("pictures would come out in many shapes; give a height and a width, or a crop")

    @property
    def shape(self) -> Sides:
        return self.crop_high or self.high or 0, self.crop_wide or self.wide or 0

    def resized(self, high: int, wide: int) -> Sides:
        if self.high and self.wide:
            return self.high, self.wide
        if not self.shorter:
            return high, wide
        short, long = sorted((high, wide))
        if self.longer and long / short * self.shorter > self.longer:
            exact = self.longer * short / long
            side = round(exact)
            sides = (side, long if side == short else int(exact * long / short))
        else:
            sides = self.shorter, int(self.shorter * long / short)
        return sides if high <= wide else sides[::-1]

    def keys(self) -> dict[str, Any]:
        edges = {"shortest_edge": self.shorter} | ({"longest_edge": self.longer} if self.longer else {})
        size = {"height": self.high, "width": self.wide} if self.high else edges if self.shorter else None
        crop = {"crop_size": {"height": self.crop_high, "width": self.crop_wide}} if self.crop_high else {}
        return {
            "do_resize": size is not None,
            **({"size": size, "resample": self.resample} if size else {}),
            "do_center_crop": bool(crop),
            **crop,
        }


@dataclass(frozen=True)
class TimmProcessor(Processor):
    """What timm does to be tested: a picture fills a shape that is larger by `1 / crop`, and its middle is cut out.

    Where it is squashed, it is brought to the larger shape whatever its own is.
    """

    high: int
    wide: int
    resample: int = BICUBIC
    crop: float = 0.875
    squash: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.crop < math.inf:
            raise ValueError(f"crop is {self.crop}; choose a share above 0")
        self.check({"high": self.high, "wide": self.wide, **dict(zip(("scaled", "across"), self.scaled, strict=True))})

    @property
    def scaled(self) -> Sides:
        """The shape that is cropped."""
        return math.floor(self.high / self.crop), math.floor(self.wide / self.crop)

    @property
    def shape(self) -> Sides:
        return self.high, self.wide

    def resized(self, high: int, wide: int) -> Sides:
        above, across = self.scaled
        if self.squash:
            return above, across
        if above == across:
            return TransformersProcessor(shorter=above, crop_high=above, crop_wide=above).resized(high, wide)
        ratio = min(high / above, wide / across)
        return round(high / ratio), round(wide / ratio)

    def before(self, spare: int) -> int:
        return -(-spare // 2) if spare < 0 else round(spare / 2)

    def keys(self) -> dict[str, Any]:
        above, across = self.scaled
        square = above == across and not self.squash
        resize = {"shorter": above} if square else {"high": above, "wide": across}
        said = TransformersProcessor(**resize, resample=self.resample, crop_high=self.high, crop_wide=self.wide)
        return said.keys()
