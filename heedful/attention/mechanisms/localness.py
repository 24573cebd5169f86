"""Localness: each query predicts where it wants to look, and how far around."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mechanisms.softmax import SoftmaxLike
from heedful.attention.sight import Sight


class Localness(SoftmaxLike):
    """Softmax with a Gaussian around a centre that each query predicts, and a width too (Yang et al., 2018).

    The centre lies between the first and the last position that the row sees, and the width is a share of all of
    them; the Gaussian's deviation is half the width, and its exponent is added to the scores. Cost: T^2 in time and
    memory, for no fused kernel knows it.
    """

    card: ClassVar = Card(
        "Modeling Localness for Self-Attention Networks (Yang et al., 2018)",
        2018,
        "T^2",
        limits="no fused kernel: T x S numbers for every head",
        ordered=True,
        tier="B",
    )

    def __init__(self, heads: int, width: int, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        self.hidden = nn.Parameter(torch.randn(heads, width, width) / width**0.5)
        self.predict = nn.Parameter(torch.randn(2, heads, width, 1) / width**0.5)  # the centre, the width

    def placed(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        first, last = sight.once("ends", lambda: ends(sight))
        centre, wide = ((q @ self.hidden.to(q.dtype)).tanh() @ self.predict.to(q.dtype)[:, None]).sigmoid()  # B H T 1
        centre, wide = first + (last - first) * centre, (last - first + 1) * wide
        away = sight.columns[:, None, None].to(q.dtype) - centre
        return q @ k.mT / q.shape[-1] ** 0.5 - 2 * (away / wide).square()


def ends(sight: Sight) -> tuple[Tensor, Tensor]:
    """The first and the last position that each row sees, 0 where it sees nothing: B|1 H|1 T|1 1 each."""
    seen, at = sight.dense, sight.columns[:, None, None]
    if not seen.shape[-1]:
        return sight.blind.long(), sight.blind.long()
    most = torch.iinfo(at.dtype).max
    first = torch.where(seen, at, most).amin(-1, keepdim=True).masked_fill(sight.blind, 0)
    return first, torch.where(seen, at, -1).amax(-1, keepdim=True).masked_fill(sight.blind, 0)
