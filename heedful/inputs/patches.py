"""Images as sequences: patches, each brought to the model's width, read row by row."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import conv2d

from heedful.blocks.convolutions import Convolved, Residual
from heedful.errors import Refusal
from heedful.inputs.grids import Shape


class Patches(nn.Module):
    """Squares of pixels, flattened and brought to the model's width by a matrix: B C H W -> B M h w."""

    apart: ClassVar[bool] = True  # each patch is made of its own pixels alone

    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__()
        self.channels, self.patch = channels, patch
        self.matrix = nn.Linear(channels * patch * patch, width)

    def forward(self, images: Tensor) -> Tensor:
        size = self.patch
        cut = images.unflatten(3, (-1, size)).unflatten(2, (-1, size))  # B C h p w p
        flat = cut.permute(0, 2, 4, 1, 3, 5).flatten(3)  # B h w Cpp
        return self.matrix(flat).permute(0, 3, 1, 2)

    def shape(self, high: int, wide: int) -> Shape:
        """How many rows and columns of patches an image has; refused where they leave a rest."""
        if high % self.patch or wide % self.patch or not high * wide:
            said = f"images of {high} x {wide} pixels cannot be cut into patches of {self.patch} x {self.patch}"
            raise Refusal(f"{said}; choose sizes that {self.patch} divides, or another model.patch")
        return high // self.patch, wide // self.patch


class ConvolvedPatches(Patches):
    """The same numbers by a convolution whose steps are as wide as its window (Dosovitskiy et al., 2021).

    On a GPU by the matrix all the same: so a compiled ViT-B/16 answers in 0.92 of the time.
    """

    def forward(self, images: Tensor) -> Tensor:
        if images.is_cuda:
            return super().forward(images)
        size = self.patch
        kernel = self.matrix.weight.unflatten(1, (self.channels, size, size))
        return conv2d(images, kernel, self.matrix.bias, stride=size)


class ResNetPatches(Patches):
    """Patches of what a small ResNet has made of the image, each of its stages halving it (the paper's hybrid).

    The patch's size is a power of two: as many stages, of two convolutions each.
    """

    apart: ClassVar[bool] = False

    def __init__(self, channels: int, width: int, patch: int) -> None:
        nn.Module.__init__(self)
        steps = patch.bit_length() - 1
        if patch != 1 << steps or not steps:
            raise ValueError(f"a ResNet's stages halve the image, and {patch} is no power of two above 1; choose one")
        self.channels, self.patch = channels, patch
        widths = [max(8, width >> (steps - at)) for at in range(steps + 1)]
        parts: list[nn.Module] = [Convolved(channels, widths[0], 3)]
        parts += [Residual(before, ((after, 3, 2), (after, 3, 1))) for before, after in pairwise(widths)]
        self.steps = nn.Sequential(*parts, nn.Conv2d(widths[-1], width, 1))

    def forward(self, images: Tensor) -> Tensor:
        return self.steps(images)


class OverlappingPatches(Patches):
    """Patches through small windows that overlap, each step halving the image (Xiao et al., 2021: early convolutions).

    The patch's size is a power of two: as many steps. Each norm is over the channels of a place, as in the blocks.
    """

    apart: ClassVar[bool] = False

    def __init__(self, channels: int, width: int, patch: int) -> None:
        nn.Module.__init__(self)
        steps = patch.bit_length() - 1
        if patch != 1 << steps or not steps:
            raise ValueError(f"overlapping patches halve the image some times, and {patch} is no power of two above 1")
        self.channels, self.patch = channels, patch
        widths = [channels, *(max(8, width >> (steps - at)) for at in range(1, steps + 1))]
        parts: list[nn.Module] = []
        for before, after in pairwise(widths):
            parts += [nn.Conv2d(before, after, 3, 2, 1), nn.GroupNorm(1, after), nn.GELU()]
        self.steps = nn.Sequential(*parts, nn.Conv2d(widths[-1], width, 1))

    def forward(self, images: Tensor) -> Tensor:
        return self.steps(images)
