"""Dropout: what is left out while a model learns."""

from __future__ import annotations

from torch import Tensor, nn


class Dropout(nn.Dropout):
    """A share of all numbers is left out, others each time (Srivastava et al., 2014); who does not learn never asks."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if self.training else x
