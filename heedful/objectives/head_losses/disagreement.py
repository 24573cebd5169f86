"""Disagreement of heads (Li et al., 2018): it costs that two look at the same."""

from __future__ import annotations

from torch import Tensor

from heedful.attention import Sight
from heedful.attention.card import Card
from heedful.objectives.head_losses.row_means import LOOKS, mean_of_rows

CARD = Card(
    "Multi-Head Attention with Disagreement Regularization (Li et al., 2018)", 2018, "T^2", limits=LOOKS, tier="B"
)


def overlap(weights: Tensor, sight: Sight) -> Tensor:
    """How much two heads of a layer look at the same, over all pairs of them: 0 where none do, at most 1.

    Disagreement on attended positions (Li et al., 2018), which is this, less than nothing: of the paper's three kinds
    the one about where heads look, not about what they take or give. Cost: T^2, the weights of all layers as tensors.
    """
    heads = weights.shape[1]
    both = weights.sum(1).square() - weights.square().sum(1)  # B T S, twice each pair
    return mean_of_rows(both.sum(-1) / max(1, heads * (heads - 1)), sight)
