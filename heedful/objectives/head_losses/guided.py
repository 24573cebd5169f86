"""Guided heads (Deshpande and Narasimhan, 2020): some are told where to look."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention import Sight
from heedful.attention.card import Card
from heedful.objectives.head_losses.row_means import LOOKS, mean_of_rows

CARD = Card(
    "Guiding Attention for Self-Supervised Learning with Transformers (Deshpande and Narasimhan, 2020)",
    2020,
    "T^2",
    limits=LOOKS,
    tier="B",
)


def astray(weights: Tensor, sight: Sight) -> Tensor:
    """How far the first half of the heads are from looking, by turns, at the one before, the next and the first.

    Guided attention (Deshpande and Narasimhan, 2020): the squared distance to that pattern, where it can be seen.
    Cost: T^2, the weights of all layers as tensors.
    """
    guided = weights[:, : max(1, weights.shape[1] // 2)]
    i, j = sight.rows[:, None, :, None], sight.columns[:, None, None]
    turn = torch.arange(guided.shape[1], device=i.device)[:, None, None] % 3
    wanted = torch.where(turn == 0, i - 1, torch.where(turn == 1, i + 1, 0)) == j  # B|1 H T S
    wanted = wanted & sight.dense[:, : guided.shape[1]]
    away = (guided - wanted.to(guided.dtype)).square().sum(-1) * wanted.any(-1)  # B H T
    return mean_of_rows(away.mean(1), sight)
