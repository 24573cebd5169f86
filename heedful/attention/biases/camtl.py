"""CAMTL (Pilault et al., 2021): a table along the diagonal that each task stretches and shifts."""

from __future__ import annotations

from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mask_and_bias import Bias, may_ask
from heedful.errors import Refusal


class TaskBlocks(Bias):
    """A learned table along the diagonal, in `pieces`, that each of several `tasks` stretches and shifts for itself.

    CAMTL (Pilault et al., 2021): scores of positions in one block get A * gamma + beta, of which A is shared and gamma
    and beta are the task's. Encoders of text are told of which task a sequence is (the recipe `classify-several`, or
    `model(tokens, tasks=ids)`, where ids (B) count from 0); for other models all are of the first, unless Python says
    `model.bias = bias.of(ids)` before a forward, where `bias` is the model's own. Cost: T^2.
    """

    card: ClassVar = Card(
        "Conditionally Adaptive Multi-Task Learning (Pilault et al., 2021)",
        2021,
        "T^2",
        limits="positions up to the length that it was made for; beyond it nothing is added",
        ordered=True,
        tier="B",
    )

    def __init__(self, length: int, tasks: int = 1, pieces: int = 4) -> None:
        super().__init__()
        if tasks < 1 or pieces < 1:
            raise ValueError(f"tasks={tasks} and pieces={pieces} are too few; choose 1 or more of both")
        self.side, self.pieces = -(-length // pieces), pieces
        self.table = nn.Parameter(torch.randn(pieces, self.side, self.side) * 0.02)
        self.stretch = nn.Parameter(torch.ones(tasks, self.side, self.side))
        self.shift = nn.Parameter(torch.zeros(tasks, self.side, self.side))
        self.ids: Tensor | None = None

    def of(self, tasks: Tensor) -> Self:
        """The same bias for sequences of these tasks (B)."""
        known = not tasks.is_cuda and may_ask(tasks) and tasks.numel()
        if known and not 0 <= int(tasks.min()) <= int(tasks.max()) < len(self.stretch):
            raise Refusal(f"tasks are counted from 0 up to {len(self.stretch) - 1}, and {tasks.tolist()} are not")
        other = self.__class__.__new__(self.__class__)
        other.__dict__ = {**self.__dict__, "ids": tasks, "batch": len(tasks)}
        return other

    def take(self, index: Tensor) -> Self:
        return self if self.ids is None else self.of(self.ids[index])

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        block, other = i.clamp(min=0) // self.side, j.clamp(min=0) // self.side
        task = torch.zeros_like(b) if self.ids is None else self.ids[b * (self.batch > 1)]
        row, column = i.clamp(min=0) % self.side, j.clamp(min=0) % self.side
        own = self.table[block.clamp(max=self.pieces - 1), row, column]
        said = own * self.stretch[task, row, column] + self.shift[task, row, column]
        return said * ((block == other) & (block < self.pieces))
