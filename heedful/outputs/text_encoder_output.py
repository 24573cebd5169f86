"""What a model that reads a text is asked: its states, a class, tags, a span that answers, the tokens behind a mask.

Each takes states (B T M) and where they stand (B T); one that stands below 0 is padding.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from heedful.blocks.block import Dropout

Activation = Callable[[], nn.Module]


def first(x: Tensor, positions: Tensor) -> Tensor:
    """The state of each sequence that stands at 0, wherever padding is: B T M, B|1 T -> B M."""
    at = (positions == 0).long().argmax(-1).expand(len(x))
    return x[torch.arange(len(x), device=x.device), at]


def mean(x: Tensor, positions: Tensor) -> Tensor:
    """The mean of each sequence's states, without padding: B T M, B|1 T -> B M (Reimers and Gurevych, 2019)."""
    there = (positions >= 0).unsqueeze(-1).to(x.dtype)
    return (x * there).sum(1) / there.sum(1).clamp(min=1)


def last(x: Tensor, positions: Tensor) -> Tensor:
    """The state of each sequence that stands last, wherever padding is: B T M, B|1 T -> B M."""
    at = positions.argmax(-1).expand(len(x))
    return x[torch.arange(len(x), device=x.device), at]


POOLS = {"first": first, "mean": mean, "last": last}


class States(nn.Module):
    """Nothing is asked: the states themselves, B T M."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return x


class Pooler(nn.Module):
    """One vector of the first state (Devlin et al., 2019), or of the mean of all: B T M -> B M."""

    def __init__(self, width: int, activation: Activation = nn.Tanh, pool: str = "first") -> None:
        super().__init__()
        self.matrix, self.activation, self.pool = nn.Linear(width, width), activation(), POOLS[pool]

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.activation(self.matrix(self.pool(x, positions)))


class Pooled(States):
    """The states themselves, and a pooler that was learned with them: `pooler` gives a vector to whoever asks it."""

    def __init__(self, width: int, pooler: Activation = nn.Tanh) -> None:
        super().__init__()
        self.pooler = Pooler(width, pooler)


class Classes(nn.Module):
    """One class for the sentence or pair, of a vector of its first state, or of the mean of all: B T M -> B C."""

    def __init__(
        self, width: int, classes: int, pooler: Activation = nn.Tanh, dropout: float = 0.0, pool: str = "first"
    ) -> None:
        super().__init__()
        if pool not in POOLS:
            raise ValueError(f"pool should be {' or '.join(POOLS)}, not {pool!r}")
        self.pooler, self.drop = Pooler(width, pooler, pool), Dropout(dropout)
        self.matrix = nn.Linear(width, classes)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.matrix(self.drop(self.pooler(x, positions)))


class LastClasses(nn.Module):
    """One class for the text, of the state that has seen all others, which is a decoder's last: B T M -> B C."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.matrix = nn.Linear(width, classes, bias=False)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.matrix(last(x, positions))


class Tags(nn.Module):
    """A class for each token: B T M -> B T C."""

    def __init__(self, width: int, classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.drop, self.matrix = Dropout(dropout), nn.Linear(width, classes)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.matrix(self.drop(x))


class Answer(nn.Module):
    """How well the answer may begin and end at each token: B T M -> B T 2."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.matrix = nn.Linear(width, 2)

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.matrix(x)


class MaskedToken(nn.Module):
    """Which token stands behind a mask: B T M -> B T V, by the table of the inputs read backwards."""

    def __init__(
        self,
        width: int,
        table: nn.Embedding,
        activation: Activation = nn.GELU,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        tied: bool = True,
    ) -> None:
        super().__init__()
        vocab, narrow = table.weight.shape
        self.dense, self.activation, self.norm = nn.Linear(width, narrow), activation(), norm(narrow)
        self.matrix = nn.Linear(narrow, vocab)
        nn.init.zeros_(self.matrix.bias)
        nn.init.normal_(self.matrix.weight, std=0.02)
        if tied:
            self.matrix.weight = table.weight

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.matrix(self.norm(self.activation(self.dense(x))))
