"""Random feature attention: softmax among vectors of one length by sines and cosines, in linear time."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from heedful.attention.card import Card
from heedful.attention.mechanisms.linear import LinearLike
from heedful.attention.mechanisms.running import Given

LEAST = math.exp(-2)  # of a row's sum, which is lower by the error of an estimate alone: vectors are of length 1


class RFA(LinearLike):
    """Softmax of queries and keys of length 1, estimated by random sines and cosines (Peng et al., 2021).

    The mean over random w of sin(w.q) sin(w.k) + cos(w.q) cos(w.k) is exp(q.k) up to a factor that falls out. Cost: T,
    in time and memory; a new token costs the same however many came before. The error falls as the root of the number
    of `features`; an estimate may be below zero. The paper's gate, which forgets what is long ago, is no part of it.
    It takes no bias, and hides padding and the future alone.
    """

    directions: Tensor
    card: ClassVar = Card(
        "Random Feature Attention (Peng et al., 2021)",
        2021,
        "T",
        limits="an estimate, of queries and keys of one length; no bias; no masks but padding and causal; no gate",
        tier="B",
    )

    def __init__(self, width: int, features: int = 64) -> None:
        super().__init__()
        if features < 1:
            raise ValueError(f"{features} features say nothing; choose 1 or more, 64 for instance")
        self.register_buffer("directions", torch.randn(features, width))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Other random features. Nothing else ever changes them."""
        self.directions.copy_(torch.randn(self.directions.shape, generator=generator))

    def of_queries(self, q: Tensor) -> Tensor:
        angle = normalize(q, dim=-1) @ self.directions.to(q.dtype).mT
        return torch.cat((angle.sin(), angle.cos()), -1) * len(self.directions) ** -0.5

    def of_keys(self, k: Tensor) -> Tensor:
        return self.of_queries(k)

    def given(self, q: Tensor, k: Tensor, v: Tensor, there: Tensor) -> Given:
        """In float64: features of either sign cancel one another, where sums are made before products."""
        return super().given(q.double(), k.double(), v.double(), there)

    def portioned(self, y: Tensor, total: Tensor) -> Tensor:
        return y / total.clamp(min=LEAST)
