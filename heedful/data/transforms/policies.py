"""Changes drawn from many: each image is given one or a few of them, at a strength by chance."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from heedful.data.sample_dice import draw
from heedful.data.transforms import colour
from heedful.data.transforms.moves import Affine, Size, affine, each
from heedful.data.transforms.variation import Variation, share

COLOUR, TRIVIAL, RAND, ERASE = 4, 5, 6, 16  # purposes of dice; RAND has one for each of its changes
HUE, GREYED = 19, 22
SHEAR, MOVE, TURN, ENHANCE = 0.99, 32.0, math.radians(135.0), 0.99  # TrivialAugment's wide ranges, moves in pixels
NARROW = (0.3, 10.0, math.radians(30.0), 0.9)  # RandAugment's
GREY = 0.5  # what comes in from outside, where an image is moved
OPERATIONS = 14
PLAIN, SHEAR_X, SHEAR_Y, MOVE_X, MOVE_Y, ROTATE = range(6)
BRIGHT, SATURATED, CONTRAST, SHARP, POSTERISED, SOLARISED, STRETCHED, EQUALISED = range(6, 14)


class OneOfMany(Variation):
    """One change of fourteen for each image, at a strength from 0 to 1: it is moved, or its shades change, or none."""

    shades: ClassVar[bool] = True
    most: tuple[float, float, float, float]  # of shears, moves, turns and shades
    bits: int  # of shades, where fewest are left

    def change(self, dice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Which change each image is given, how strong, and with which sign: B each."""
        raise NotImplementedError

    def draw(self, dice: Tensor, size: Size) -> Affine:
        which, strength, sign = self.change(dice)
        shear, move, turn, _ = self.most
        kinds = (SHEAR_X, SHEAR_Y, ROTATE, MOVE_X, MOVE_Y)
        given = [torch.where(which == kind, strength * sign, 0.0) for kind in kinds]
        high, wide = size
        moves = (given[3] * min(2 * move / wide, 1.0), given[4] * min(2 * move / high, 1.0))  # in half sides
        matrix = affine((given[0] * shear, given[1] * shear), given[2] * turn, moves, high / wide)
        return Affine(size, matrix, which=(which >= SHEAR_X) & (which <= ROTATE), outside=GREY)

    def shaded(self, images: Tensor, dice: Tensor) -> Tensor:
        which, strength, sign = self.change(dice)
        more = 1 + strength * sign * self.most[3]
        changes = {
            BRIGHT: lambda x: colour.brightness(x, more),
            SATURATED: lambda x: colour.saturation(x, more),
            CONTRAST: lambda x: colour.contrast(x, more),
            SHARP: lambda x: colour.sharpness(x, more),
            POSTERISED: lambda x: colour.posterise(x, (8 - strength * (8 - self.bits)).round()),
            SOLARISED: lambda x: colour.solarise(x, 1 - strength),
            STRETCHED: colour.autocontrast,
            EQUALISED: colour.equalise,
        }
        made = images
        for kind, change in changes.items():
            made = torch.where(each(which == kind), change(images), made)
        return made


class TrivialAugment(OneOfMany):
    """One change of fourteen for each image, at any strength: tuning-free (Müller and Hutter, 2021)."""

    most = (SHEAR, MOVE, TURN, ENHANCE)
    bits = 2

    def change(self, dice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        which, strength, sign = draw(dice, 3, TRIVIAL).unbind(1)
        return (which * OPERATIONS).long(), strength, torch.where(sign < 0.5, -1.0, 1.0)


class AtOneStrength(OneOfMany):
    """One of the changes of RandAugment, the first or a later one."""

    most = NARROW
    bits = 4

    def __init__(self, strength: float, at: int) -> None:
        self.strength, self.at = strength, at

    def change(self, dice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        which, sign = draw(dice, 2, RAND + self.at).unbind(1)
        strength = torch.full_like(which, self.strength)
        return (which * OPERATIONS).long(), strength, torch.where(sign < 0.5, -1.0, 1.0)


class RandAugment(Variation):
    """A few changes of fourteen for each image, one after the other, at one strength (Cubuk et al., 2020)."""

    shades: ClassVar[bool] = True

    def __init__(self, changes: int = 2, strength: float = 0.3) -> None:
        if not 1 <= changes <= 8:
            raise ValueError(f"{changes} changes are none or too many; choose 1 to 8")
        self.changes, self.strength = changes, share("strength", strength)

    @property
    def parts(self) -> tuple[Variation, ...]:
        return tuple(AtOneStrength(self.strength, at) for at in range(self.changes))


class Colour(Variation):
    """Brightness, contrast and saturation, each by up to `strength`, and the hue by up to so much of a turn."""

    shades: ClassVar[bool] = True

    def __init__(self, strength: float = 0.4, hue: float = 0.0) -> None:
        self.strength, self.hue = share("strength", strength), share("hue", hue)

    def shaded(self, images: Tensor, dice: Tensor) -> Tensor:
        bright, contrast, saturated = (1 + (2 * draw(dice, 3, COLOUR) - 1) * self.strength).unbind(1)
        images = colour.saturation(colour.contrast(colour.brightness(images, bright), contrast), saturated)
        return colour.hue(images, (2 * draw(dice, 1, HUE)[:, 0] - 1) * self.hue) if self.hue else images


class Grey(Variation):
    """Without its colours, by a chance: what is in an image shall not be told by them alone (Chen et al., 2020)."""

    shades: ClassVar[bool] = True

    def __init__(self, chance: float = 0.2) -> None:
        self.chance = share("chance", chance)

    def shaded(self, images: Tensor, dice: Tensor) -> Tensor:
        return torch.where(each(draw(dice, 1, GREYED)[:, 0] < self.chance), colour.grey(images), images)


class Erase(Variation):
    """A rectangle of each image, by a chance, becomes noise (Zhong et al., 2020)."""

    def __init__(self, chance: float = 0.25, least: float = 0.02, most: float = 0.33) -> None:
        if not 0.0 < least <= most <= 1.0:
            raise ValueError("shares of the area go from least up to most, above 0 and up to 1")
        self.chance, self.least, self.most = share("chance", chance), least, most

    def shaded(self, images: Tensor, dice: Tensor) -> Tensor:
        chance, area, shape, down, across = draw(dice, 5, ERASE).unbind(1)
        size = (self.least + area * (self.most - self.least)).sqrt()
        ratio = torch.exp((2 * shape - 1) * math.log(3.3)).sqrt()
        inside = rectangle(images, (size / ratio).clamp(max=1), (size * ratio).clamp(max=1), down, across)
        noise = draw(dice, images[0].numel(), ERASE + 1).view_as(images).to(images.dtype)
        return torch.where(inside & each(chance < self.chance), noise, images)


def rectangle(images: Tensor, high: Tensor, wide: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Which pixels lie in a rectangle, so large and so far down and across as shares of what is left: B 1 H W."""
    made = []
    for side, size, place in ((images.shape[-2], high, down), (images.shape[-1], wide, across)):
        length = (size * side).round()
        first = (place * (side - length + 1)).floor()[:, None]
        at = torch.arange(side, device=images.device)
        made.append((at >= first) & (at < first + length[:, None]))
    return made[0][:, None, :, None] & made[1][:, None, None, :]
