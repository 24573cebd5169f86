"""k-nearest-neighbour accuracy: how often the nearest images, by their vectors, vote for the right class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from heedful.metrics.metric import Metric
from heedful.models.numerics import unit
from heedful.results import Label

NEIGHBOURS = 5  # that tell what a picture is
WARMTH = 0.07  # of their votes (Wu et al., 2018)


@dataclass
class NeighbourAccuracy(Metric[Any]):
    """k-NN accuracy: all samples vote on each other, so that vectors (B M) are kept until all are there."""

    names: ClassVar[tuple[str, ...]] = ("accuracy",)
    share: ClassVar[bool] = True

    vectors: list[Tensor] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    known: tuple[str, ...] = ()

    def update(self, samples: Sequence[Any], seen: Tensor, learned: Any) -> None:
        self.vectors, self.labels = [*self.vectors, seen], [*self.labels, *(one.label for one in samples)]
        self.known = learned.labels

    def merge(self, other: Self) -> None:
        self.vectors, self.labels = self.vectors + other.vectors, self.labels + other.labels
        self.known = self.known or other.known

    def compute(self) -> dict[str, float]:
        if not self.labels:
            return {"accuracy": 0.0}
        said = vote_of_nearest(torch.cat(self.vectors), self.labels, self.known)
        right = [label == one.name for label, one in zip(self.labels, said, strict=True)]
        return {"accuracy": sum(right) / len(right)}


def vote_of_nearest(vectors: Tensor, labels: Sequence[str], known: Sequence[str]) -> list[Label]:
    """The class that the nearest neighbours of each sample vote for, and its share of the votes."""
    near, close = neighbours(vectors)
    made = []
    for places, weights in zip(near.tolist(), (close / WARMTH).exp().tolist(), strict=True):
        votes = dict.fromkeys(known, 0.0)
        for at, weight in zip(places, weights, strict=True):
            votes[labels[at]] += weight
        best, all_of = max(votes, key=lambda label: votes[label]), max(1e-12, sum(votes.values()))
        made.append(Label(best, votes[best] / all_of, tuple((name, vote / all_of) for name, vote in votes.items())))
    return made


def neighbours(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Which others are nearest to each vector, by the cosine, and how near: B N each."""
    made = unit(vectors)
    alike = made @ made.T
    alike.fill_diagonal_(-torch.inf)
    close, near = alike.topk(min(NEIGHBOURS, len(vectors) - 1), -1)
    return near, close
