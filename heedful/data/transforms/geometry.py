"""Where pixels come from: images flipped, moved, cut out, turned and sheared."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, pad

from heedful.data.transforms.augment_dice import draw
from heedful.data.transforms.variation import Variation, each, share

FLIP, CROP, RESIZED, TURN = 1, 2, 3, 18  # purposes of dice
GREY = 0.5  # what comes in from outside, where an image is moved


class Flip(Variation):
    """Left for right, by an even chance."""

    def __init__(self, chance: float = 0.5) -> None:
        self.chance = share("chance", chance)

    def __call__(self, images: Tensor, dice: Tensor) -> Tensor:
        return torch.where(each(draw(dice, 1, FLIP)[:, 0] < self.chance), images.flip(-1), images)


class Crop(Variation):
    """Moved by up to `padding` pixels each way; black comes in, or with `reflect` the image mirrored."""

    def __init__(self, padding: int = 4, reflect: bool = False) -> None:
        if padding < 1:
            raise ValueError(f"a padding of {padding} pixels moves nothing; choose 1 or more")
        self.padding, self.reflect = padding, reflect

    def __call__(self, images: Tensor, dice: Tensor) -> Tensor:
        high, wide = images.shape[-2:]
        moves = (draw(dice, 2, CROP) * (2 * self.padding + 1)).long()  # B 2
        rows = moves[:, :1] + torch.arange(high, device=images.device)  # B H
        columns = moves[:, 1:] + torch.arange(wide, device=images.device)
        if self.reflect:
            around, rows, columns = images, mirrored(rows - self.padding, high), mirrored(columns - self.padding, wide)
        else:
            around = pad(images, (self.padding,) * 4)
        at = torch.arange(len(images), device=images.device)
        return around[at[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def mirrored(places: Tensor, side: int) -> Tensor:
    """Places beyond the ends of a side, back from them as from mirrors, however far; the ends themselves once."""
    turn = max(1, 2 * (side - 1))
    return torch.minimum(places % turn, turn - places % turn)


class ResizedCrop(Variation):
    """A part of the image, of any place, size and shape, scaled to the whole (Szegedy et al., 2015)."""

    def __init__(self, least: float = 0.35, most: float = 1.0, stretch: float = 4 / 3) -> None:
        if not 0.0 < least <= most <= 1.0 or stretch < 1.0:
            raise ValueError("shares of the area go from least up to most, above 0 and up to 1, and stretch from 1 up")
        self.least, self.most, self.stretch = least, most, stretch

    def __call__(self, images: Tensor, dice: Tensor) -> Tensor:
        return self.cut(images, dice, (images.shape[-2], images.shape[-1]))

    def cut(self, images: Tensor, dice: Tensor, size: tuple[int, int]) -> Tensor:
        """Such parts at a size: B C H W -> B C h w."""
        area, shape, down, across = draw(dice, 4, RESIZED).unbind(1)
        area = self.least + area * (self.most - self.least)
        ratio = torch.exp((2 * shape - 1) * math.log(self.stretch)).sqrt()  # wider than high
        high, wide = (area.sqrt() / ratio).clamp(max=1.0), (area.sqrt() * ratio).clamp(max=1.0)
        zero = torch.zeros_like(high)
        matrix = torch.stack((wide, zero, (2 * across - 1) * (1 - wide), zero, high, (2 * down - 1) * (1 - high)), 1)
        return taken(images, matrix.view(-1, 2, 3), size=size)


class Turn(Variation):
    """Turned about its middle by up to so many degrees either way; what comes in is the edge, drawn out."""

    def __init__(self, degrees: float = 180.0) -> None:
        if not 0.0 < degrees <= 180.0:
            raise ValueError(f"degrees={degrees} turns nothing or too far; choose one above 0 and up to 180")
        self.most = math.radians(degrees)

    def __call__(self, images: Tensor, dice: Tensor) -> Tensor:
        turn = (2 * draw(dice, 1, TURN)[:, 0] - 1) * self.most
        zero = torch.zeros_like(turn)
        return taken(images, affine((zero, zero), turn, (zero, zero), images.shape[-2] / images.shape[-1]))


def taken(images: Tensor, matrix: Tensor, outside: float | None = None, size: tuple[int, int] | None = None) -> Tensor:
    """Each pixel from where its matrix (B 2 3) says, from -1 to 1; what lies outside is the edge, or a shade."""
    high, wide = size or images.shape[-2:]
    y, x = (((torch.arange(n, device=images.device) + 0.5) * 2 / n - 1).to(images.dtype) for n in (high, wide))
    grid = torch.stack((x.expand(high, wide), y[:, None].expand(high, wide), torch.ones_like(x).expand(high, wide)), -1)
    places = torch.einsum("hwk,bck->bhwc", grid, matrix.to(images.dtype))
    if outside is None:
        return grid_sample(images, places, padding_mode="border", align_corners=False)
    return grid_sample(images - outside, places, align_corners=False) + outside


def affine(shears: tuple[Tensor, Tensor], turn: Tensor, moves: tuple[Tensor, Tensor], aspect: float) -> Tensor:
    """The matrices (B 2 3) that look up pixels of images sheared, turned clockwise and moved (in half sides).

    Shears and moves are across, then down; `aspect` is the height over the width.
    """
    (across, down), cos, sin = shears, turn.cos(), turn.sin()
    first = (cos + sin * down, (sin + cos * across) * aspect, moves[0])
    second = ((cos * down - sin) / aspect, cos - sin * across, moves[1])
    return torch.stack((*first, *second), 1).view(-1, 2, 3)
