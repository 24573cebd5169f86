"""Two images as one, and how much each of them counts."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from heedful.data.sample_dice import draw
from heedful.data.transforms.moves import each
from heedful.data.transforms.policies import rectangle

MIX = 20  # purpose of dice
KNOTS = 1024  # of the table that makes shares of even numbers


class Mix:
    """Mixes images (B C H W) with others; the share of each is drawn from Beta(strength, strength)."""

    def __init__(self, strength: float = 1.0) -> None:
        if not 0.0 < strength <= 100.0:
            raise ValueError(f"a strength of {strength} cannot be drawn with; choose one above 0, such as 0.8")
        self.strength = strength
        self.table = torch.from_numpy(quantiles(strength))

    def __call__(self, images: Tensor, others: Tensor, dice: Tensor) -> tuple[Tensor, Tensor]:
        """The mixed images, and the share of the first in each (B)."""
        raise NotImplementedError

    def shares(self, dice: Tensor) -> Tensor:
        """Shares by chance: B."""
        self.table = self.table.to(dice.device)
        at = draw(dice, 1, MIX)[:, 0] * (len(self.table) - 1)
        low = at.floor().long()
        return torch.lerp(self.table[low], self.table[low + 1], at - low)


class MixUp(Mix):
    """Each pixel is a mean of both images' (Zhang et al., 2018)."""

    def __init__(self, strength: float = 0.8) -> None:
        super().__init__(strength)

    def __call__(self, images: Tensor, others: Tensor, dice: Tensor) -> tuple[Tensor, Tensor]:
        share = self.shares(dice)
        return torch.lerp(others, images, each(share).to(images.dtype)), share


class CutMix(Mix):
    """A rectangle of the other image lies on the first (Yun et al., 2019)."""

    def __call__(self, images: Tensor, others: Tensor, dice: Tensor) -> tuple[Tensor, Tensor]:
        side = (1 - self.shares(dice)).sqrt()
        inside = rectangle(images, side, side, *draw(dice, 2, MIX + 1).unbind(1))
        return torch.where(inside, others, images), 1 - inside.flatten(1).float().mean(1)


def quantiles(strength: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """The values below which even shares of Beta(strength, strength) lie: its distribution, turned about."""
    fine = 1 << 16
    # Points crowd at both ends, where a small strength has all its weight: x = sin^2, so that the density is finite.
    angle = (np.arange(fine) + 0.5) / fine * (math.pi / 2)
    x = np.sin(angle) ** 2
    logs = (2 * strength - 1) * (np.log(np.sin(angle)) + np.log(np.cos(angle)))
    weight = np.exp(logs - logs.max())
    below = np.concatenate(([0.0], np.cumsum(weight)))
    edges = np.sin(np.arange(fine + 1) / fine * (math.pi / 2)) ** 2
    assert len(x) + 1 == len(edges)
    return np.interp(np.linspace(0, 1, KNOTS + 1), below / below[-1], edges).astype(np.float32)
