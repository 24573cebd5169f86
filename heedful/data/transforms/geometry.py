"""Geometric augmentation: images are flipped, moved, cut out and turned."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from heedful.data.sample_dice import draw
from heedful.data.transforms.moves import Affine, Mirror, Shift, Size, affine
from heedful.data.transforms.variation import Variation, share

FLIP, CROP, RESIZED, TURN = 1, 2, 3, 18  # purposes of dice


class Flip(Variation):
    """Left for right, by an even chance."""

    def __init__(self, chance: float = 0.5) -> None:
        self.chance = share("chance", chance)

    def draw(self, dice: Tensor, size: Size) -> Mirror:
        return Mirror(size, draw(dice, 1, FLIP)[:, 0] < self.chance)


class Crop(Variation):
    """Moved by up to `padding` pixels each way; black comes in, or with `reflect` the image mirrored."""

    def __init__(self, padding: int = 4, reflect: bool = False) -> None:
        if padding < 1:
            raise ValueError(f"a padding of {padding} pixels moves nothing; choose 1 or more")
        self.padding, self.reflect = padding, reflect

    def draw(self, dice: Tensor, size: Size) -> Shift:
        first = (draw(dice, 2, CROP) * (2 * self.padding + 1)).long()  # B 2
        return Shift(size, first, self.padding, self.reflect)


class ResizedCrop(Variation):
    """A part of the image, of any place, size and shape, scaled to the whole (Szegedy et al., 2015)."""

    def __init__(self, least: float = 0.35, most: float = 1.0, stretch: float = 4 / 3) -> None:
        if not 0.0 < least <= most <= 1.0 or stretch < 1.0:
            raise ValueError("shares of the area go from least up to most, above 0 and up to 1, and stretch from 1 up")
        self.least, self.most, self.stretch = least, most, stretch

    def draw(self, dice: Tensor, size: Size, to: Size | None = None) -> Affine:
        """Where parts of images of a size go, which become as large as `to`."""
        area, shape, down, across = draw(dice, 4, RESIZED).unbind(1)
        area = self.least + area * (self.most - self.least)
        ratio = torch.exp((2 * shape - 1) * math.log(self.stretch)).sqrt()  # wider than high
        high, wide = (area.sqrt() / ratio).clamp(max=1.0), (area.sqrt() * ratio).clamp(max=1.0)
        zero = torch.zeros_like(high)
        matrix = torch.stack((wide, zero, (2 * across - 1) * (1 - wide), zero, high, (2 * down - 1) * (1 - high)), 1)
        return Affine(size, matrix.view(-1, 2, 3), to)


class Turn(Variation):
    """Turned about its middle by up to so many degrees either way; what comes in is the edge, drawn out."""

    def __init__(self, degrees: float = 180.0) -> None:
        if not 0.0 < degrees <= 180.0:
            raise ValueError(f"degrees={degrees} turns nothing or too far; choose one above 0 and up to 180")
        self.most = math.radians(degrees)

    def draw(self, dice: Tensor, size: Size) -> Affine:
        turn = (2 * draw(dice, 1, TURN)[:, 0] - 1) * self.most
        zero = torch.zeros_like(turn)
        return Affine(size, affine((zero, zero), turn, (zero, zero), size[0] / size[1]))
