"""Informer: only the queries that look at something in particular are asked; the others take the mean."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.mask_support import read_itself
from heedful.attention.mechanisms.nystromformer import hidden_softmax
from heedful.attention.sight import Sight


class Informer(Mechanism):
    """Softmax for the queries whose greatest score is farthest above their mean one, else the mean (Zhou et al., 2021).

    ProbSparse attention: of a sequence of T, `factor` times the logarithm of T (rounded up) are such queries; of equals
    all are. The paper tells the measure from as many keys by chance, and is then T log T; here all keys are asked.
    Cost: T^2. It cannot hide the future, for who is chosen depends on all of it, look across, or take a bias.
    """

    card: ClassVar = Card(
        "Informer: Beyond Efficient Transformer for Long Sequence Time-Series Forecasting (Zhou et al., 2021)",
        2021,
        "T^2",
        limits="never causal nor across; no bias; no masks but padding; every key is asked who is chosen",
        causal=False,
        tier="B",
    )

    def __init__(self, factor: int = 5) -> None:
        super().__init__()
        if factor < 1:
            raise ValueError(f"a factor of {factor} chooses no token; choose 1 or more")
        self.factor = factor

    def chosen(self, scores: Tensor, there: Tensor) -> Tensor:
        """Which rows look for themselves: B H T 1."""
        if not scores.shape[-1]:
            return there.expand(*scores.shape[:3], 1)
        scores, count = scores.detach(), there.sum(2, keepdim=True)  # B|1 1 1 1
        seen = scores.masked_fill(~there.mT, 0.0).sum(-1, keepdim=True) / count.clamp(min=1)
        apart = scores.masked_fill(~there.mT, -math.inf).amax(-1, keepdim=True) - seen
        apart = apart.masked_fill(~there, -math.inf)
        most = (self.factor * count.clamp(min=1).to(torch.float64).log().ceil().long()).clamp(min=1)
        least = apart.sort(dim=2, descending=True).values.gather(
            2, (most - 1).clamp(max=apart.shape[2] - 1).expand(*apart.shape[:2], 1, 1)
        )
        return apart >= least

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        there = read_itself(sight, "informer")
        scores = q @ repeat_kv(k, q.shape[1]).mT / q.shape[-1] ** 0.5
        mean = there.mT.to(q.dtype) / there.sum(2, keepdim=True).clamp(min=1)
        return torch.where(self.chosen(scores, there), hidden_softmax(scores, there.mT), mean)
