"""Adaptive Attention Span (Sukhbaatar et al., 2019): how far each head looks is learned."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Bias

LEAST = 1e-26  # of a share: its logarithm, -60, leaves a column nothing


class AdaptiveSpan(Bias):
    """How far each head looks is learned, up to `farthest`; over the last `ramp` positions it fades out.

    Sukhbaatar et al. (2019): weights are taken times clamp((ramp + span - distance) / ramp, 0, 1), whose logarithm is
    added to the scores here. Cost: T^2; the paper leaves out what no head reaches. `objective.span` makes them short:
    what a position of a head's span costs, without which none is given up.
    """

    card: ClassVar = Card(
        "Adaptive Attention Span in Transformers (Sukhbaatar et al., 2019)",
        2019,
        "T^2",
        limits="what is beyond the span is not seen, and not left out of the work either",
        ordered=True,
        tier="B",
    )

    def __init__(self, heads: int, farthest: int = 512, ramp: int = 32) -> None:
        super().__init__()
        if farthest < 1 or ramp < 1:
            raise ValueError(f"farthest {farthest} and ramp {ramp} leave nothing to see; choose 1 or more of both")
        self.heads, self.farthest, self.ramp = heads, farthest, ramp
        self.share = nn.Parameter(torch.full((heads,), 0.5))

    @property
    def spans(self) -> Tensor:
        """How far each head sees without fading: H."""
        return self.share.clamp(0.0, 1.0) * self.farthest

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        left = (self.ramp + self.spans[self.place(h)] - (i - j).abs()) / self.ramp
        return left.clamp(LEAST, 1.0).log()
