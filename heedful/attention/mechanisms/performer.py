"""Performer: softmax by random features, without bias and in linear time."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mechanisms.linear import LinearLike

LEAST = -60.0  # of an exponent: features of a key however long stay above zero in float32


class Performer(LinearLike):
    """Softmax estimated by random features that are positive and orthogonal, FAVOR+ (Choromanski et al., 2021).

    exp(q.k) is the mean over random w of exp(w.q - q.q/2) exp(w.k - k.k/2). Cost: T, in time and memory; a new token
    costs the same however many came before. The error falls as the root of the number of `features`, and grows with
    the length of queries and keys, exponentially. It takes no bias, and hides padding and the future alone.
    """

    directions: Tensor
    card: ClassVar = Card(
        paper="Rethinking Attention with Performers (Choromanski et al., 2021)",
        year=2021,
        cost="T",
        limits="an estimate: far from softmax where scores are large; no bias; no masks but padding and causal",
    )

    def __init__(self, width: int, features: int = 128) -> None:
        super().__init__()
        if features < 1:
            raise ValueError(f"{features} features say nothing; choose 1 or more, 128 for instance")
        self.register_buffer("directions", orthogonal(features, width))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Other random features. Nothing else ever changes them."""
        count, width = self.directions.shape
        self.directions.copy_(orthogonal(count, width, generator))

    def of_queries(self, q: Tensor) -> Tensor:
        w, q = self.directions.to(q.dtype), q * q.shape[-1] ** -0.25
        exponent = q @ w.mT + w.square().sum(-1) / 2  # what keys are short of; a row's own factor falls out
        return (exponent - exponent.detach().amax(-1, keepdim=True)).exp()

    def of_keys(self, k: Tensor) -> Tensor:
        """exp(w.k - k.k/2 - w.w/2), which is at most 1, times what a typical one is short of."""
        w, k = self.directions.to(k.dtype), k * k.shape[-1] ** -0.25
        apart = k.square().sum(-1, keepdim=True) - 2 * k @ w.mT + w.square().sum(-1)
        return (w.shape[-1] / 2 - apart / 2).clamp(min=LEAST).exp()


def orthogonal(count: int, width: int, generator: torch.Generator | None = None) -> Tensor:
    """Directions as a Gaussian has them (count x width), those of each square orthogonal to one another."""
    squares = torch.randn(-(-count // width), width, width, generator=generator)
    turned, upper = torch.linalg.qr(squares)
    turned = turned * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # else some directions never come
    turned = turned.mT.flatten(0, 1)[:count]
    return turned * torch.randn(count, width, generator=generator).norm(dim=-1, keepdim=True)
