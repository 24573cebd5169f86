"""Tokens as answers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

EVEN = 64  # of so many rows


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
        if bias:
            nn.init.zeros_(self.matrix.bias)
        if tied_to is not None:
            self.matrix.weight = tied_to.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.matrix(x if self.scale == 1.0 else x * self.scale)


class Rounded:
    """The same scores by a copy of the matrix with rows of zeros beneath: fast kernels take no odd number of rows."""

    def __init__(self, outputs: NextToken) -> None:
        self.outputs, weight = outputs, outputs.matrix.weight
        rows = -(-len(weight) // EVEN) * EVEN
        self.matrix = weight.detach() if rows == len(weight) else weight.new_zeros(rows, weight.shape[1])
        self.refresh()

    def refresh(self) -> None:
        """Takes the matrix over as it is now."""
        with torch.no_grad():
            if self.matrix.data_ptr() != self.outputs.matrix.weight.data_ptr():
                self.matrix[: len(self.outputs.matrix.weight)] = self.outputs.matrix.weight

    def __call__(self, x: Tensor) -> Tensor:
        """Scores: B M -> B V."""
        outputs = self.outputs
        y = linear(x if outputs.scale == 1.0 else x * outputs.scale, self.matrix)[..., : len(outputs.matrix.weight)]
        return y if outputs.matrix.bias is None else y + outputs.matrix.bias
