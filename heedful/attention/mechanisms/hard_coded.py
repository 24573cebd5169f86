"""Hard-coded attention: a Gaussian around a fixed neighbour, with nothing to learn."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mechanisms.softmax import SoftmaxLike
from heedful.attention.sight import Sight


class HardCoded(SoftmaxLike):
    """A Gaussian over positions around the one before, its own or the one after, by turns of heads (You et al., 2020).

    Cost: T^2, as it is written here; no queries or keys are looked at. The paper leaves the Gaussian as it is at the
    ends of a sequence; here what is seen sums to one.
    """

    offsets: Tensor
    card: ClassVar = Card(
        "Hard-Coded Gaussian Attention for Neural Machine Translation (You et al., 2020)",
        2020,
        "T^2",
        limits="queries and keys are not looked at; sees neighbours alone",
        ordered=True,
        tier="B",
    )

    def __init__(self, heads: int, deviation: float = 1.0, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        if not 0 < deviation < float("inf"):
            raise ValueError(f"a deviation of {deviation} is no width; choose one above 0")
        self.deviation = deviation
        self.register_buffer("offsets", torch.arange(heads) % 3 - 1, persistent=False)

    def placed(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        away = sight.columns[:, None, None] - sight.rows[:, None, :, None] - self.offsets[:, None, None]  # B|1 H T S
        nothing = (q[..., :1] + k[..., :1].mT) * 0  # which says so, to whoever asks for gradients
        return nothing - (away / self.deviation).square().to(q.dtype) / 2
