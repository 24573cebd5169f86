"""Tokens as answers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

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
        x = x if self.scale == 1.0 else x * self.scale
        return multiply(x, self.matrix.weight, self.matrix.bias) if uneven(x, self.matrix.weight) else self.matrix(x)


def uneven(x: Tensor, weight: Tensor) -> bool:
    """Whether to learn with a vocabulary that a GPU's tensor cores do not like, since their steps are of 8 numbers."""
    if not x.is_cuda or len(weight) % 8 == 0 or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return False
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype
    return dtype in (torch.bfloat16, torch.float16)


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """What a matrix gives, by one with rows of zeros beneath."""
    more = -len(weight) % EVEN
    low = weight.to(torch.get_autocast_dtype(x.device.type)) if torch.is_autocast_enabled(x.device.type) else weight
    y = linear(x, pad(low, (0, 0, 0, more)), None if bias is None else pad(bias, (0, more)))
    return y[..., : len(weight)]


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
