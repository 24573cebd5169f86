"""Tokens as answers."""

from __future__ import annotations

from torch import Tensor, nn


class NextToken(nn.Module):
    """A score for each token of the vocabulary: B T M -> B T V. Tied, it reads the table of the inputs backwards.

    States are taken times `scale` first (T5: Raffel et al., 2020).
    """

    def __init__(
        self, width: int, vocab: int, tied_to: nn.Embedding | None = None, bias: bool = False, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.scale = scale
        self.matrix = nn.Linear(width, vocab, bias=bias)
        nn.init.normal_(self.matrix.weight, std=width**-0.5)
        if tied_to is not None:
            self.matrix.weight = tied_to.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.matrix(x if self.scale == 1.0 else x * self.scale)
