"""Synthesizer: weights without keys, from the query alone or from nothing at all."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mechanisms.mask_support import check_positions
from heedful.attention.mechanisms.softmax import SoftmaxLike
from heedful.attention.sight import Sight

PAPER = "Synthesizer: Rethinking Self-Attention in Transformer Models (Tay et al., 2021)"
LIMITS = "keys are not looked at; sequences up to the length that it was made for"


class Synthesizer(SoftmaxLike):
    """Scores for columns by where they stand. A kind says what they are made of."""

    def __init__(self, heads: int, length: int, dropout: float) -> None:
        super().__init__(dropout)
        self.heads, self.length = heads, length

    @property
    def word(self) -> str:
        return f"synthesizer_{super().word.removesuffix('_synthesizer')}"

    def made(self, q: Tensor, sight: Sight) -> Tensor:
        """Scores of rows for columns by their positions: B|1 H T S."""
        raise NotImplementedError

    def placed(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        check_positions(sight, self)
        return self.made(q, sight).to(q.dtype).expand(len(q), -1, -1, -1)


class DenseSynthesizer(Synthesizer):
    """A small network makes of each query a score for every position (Tay et al., 2021). Cost: T^2; no keys."""

    card: ClassVar = Card(PAPER, 2021, "T^2", LIMITS, ordered=True)

    def __init__(self, heads: int, width: int, length: int, dropout: float = 0.0) -> None:
        super().__init__(heads, length, dropout)
        self.hidden = nn.Parameter(torch.randn(heads, width, width) / width**0.5)
        self.scored = nn.Parameter(torch.randn(heads, width, length) / width**0.5)

    def made(self, q: Tensor, sight: Sight) -> Tensor:
        at = sight.columns.clamp(min=0)
        scored = self.scored.to(q.dtype)[:, :, at].permute(2, 0, 1, 3)  # B|1 H D S
        return (q @ self.hidden.to(q.dtype)).relu() @ scored


class RandomSynthesizer(Synthesizer):
    """A table of scores, row by column, that is learned and the same for every input (Tay et al., 2021). Cost: T^2."""

    card: ClassVar = Card(PAPER, 2021, "T^2", LIMITS + "; nor are queries", ordered=True)

    def __init__(self, heads: int, length: int, dropout: float = 0.0) -> None:
        super().__init__(heads, length, dropout)
        self.table = nn.Parameter(torch.randn(heads, length, length))

    def made(self, q: Tensor, sight: Sight) -> Tensor:
        rows, columns = sight.rows.clamp(min=0)[:, :, None], sight.columns.clamp(min=0)[:, None]
        return self.table[:, rows, columns].transpose(0, 1)


class FactorisedSynthesizer(Synthesizer):
    """The same table as a product of two thin ones of `rank` (Tay et al., 2021). Cost: T^2, parameters T."""

    card: ClassVar = Card(PAPER, 2021, "T^2", LIMITS + "; nor are queries", ordered=True)

    def __init__(self, heads: int, length: int, rank: int = 8, dropout: float = 0.0) -> None:
        super().__init__(heads, length, dropout)
        if rank < 1:
            raise ValueError(f"a rank of {rank} makes no scores; choose 1 or more")
        self.of_rows, self.of_columns = (nn.Parameter(torch.randn(heads, length, rank) / rank**0.25) for _ in range(2))

    def made(self, q: Tensor, sight: Sight) -> Tensor:
        rows, columns = self.of_rows[:, sight.rows.clamp(min=0)], self.of_columns[:, sight.columns.clamp(min=0)]
        return (rows @ columns.mT).transpose(0, 1)  # B|1 H T S
