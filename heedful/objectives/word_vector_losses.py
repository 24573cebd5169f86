"""Word vectors: skip-grams with negative samples (word2vec), and logarithms of co-occurrence counts (GloVe)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from heedful.data.collate import Batch
from heedful.data.sample_dice import draw
from heedful.data.splits import Splits
from heedful.models.specs import UNKNOWN
from heedful.models.text.word_vectors import WordVectors
from heedful.objectives.objective import Loss, Objective

KEPT, RADIUS, CHANCE = 54, 55, 60  # purposes of dice; the last is the first of several
FLATTER = 0.75  # the power of counts by which words by chance are drawn
MOST, POWER = 100.0, 0.75  # counts from which on all weigh the same, and how weights grow up to there


@dataclass(frozen=True)
class CountsWords(Objective[Any]):
    """An objective of word vectors, which keep how often each word stands in the texts to learn from."""

    def configured(self, splits: Splits[Any], learned: Any) -> tuple[Any, Any]:
        stream = splits.train[0].stream
        counts = np.bincount(stream.ids[: stream.count], minlength=len(learned.tokenizer))
        return self, replace(learned, counts=torch.from_numpy(counts).float())

    def on_train_begin(self, model: nn.Module, learned: Any) -> None:
        model = cast(WordVectors, model)
        model.counts.copy_(learned.counts)


@dataclass(frozen=True)
class SkipGram(CountsWords):
    """word2vec: the vector of a word tells which words stand near it from words by chance (Mikolov et al., 2013).

    Each word looks 1 to `data.near` words far. Its `data.negatives` words by chance are shared by its neighbours.
    Which words stay and which are near is of the batch alone, so that how many there are is known before the model is.
    """

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        model = cast(WordVectors, model)
        tokens = batch["tokens"]
        total, near = torch.zeros((), device=tokens.device), torch.zeros(tokens.shape, device=tokens.device)
        for words, others, both in neighbours(batch, learned.near):
            total = total + (softplus(-model(tokens[:, words], tokens[:, others])) * both).sum()
            near[:, words] += both
        ladder = ladder_of(model.counts)
        for at in range(learned.negatives):
            drawn = torch.searchsorted(
                ladder, draw(batch["dice"], tokens.shape[1], CHANCE + at) * ladder[-1], right=True
            )
            total = total + (softplus(model(tokens, drawn.clamp(max=len(ladder) - 1))) * near).sum()
        return {"loss": Loss(total, near.sum())}


@dataclass(frozen=True)
class LogCounts(CountsWords):
    """GloVe: products of vectors are the logarithms of how often words are near others (Pennington et al., 2014)."""

    def losses(self, model: nn.Module, batch: Batch, learned: Any) -> dict[str, Loss]:
        weights = pair_weights(batch["counts"])
        error = model(batch["words"], batch["others"]) - log_counts(batch["counts"])
        return {"loss": Loss((weights * error.square()).sum(), weights.sum())}


def staying(tokens: Tensor, dice: Tensor, counts: Tensor, frequent: float) -> Tensor:
    """Which words of texts are not left out: those more frequent than a share of all are, now and then (B T)."""
    shares = shares_of(counts)
    keep = (frequent / shares.clamp(min=1e-12)).sqrt() if frequent else torch.ones_like(shares)
    return (draw(dice, tokens.shape[1], KEPT) < keep[tokens]) & (tokens > UNKNOWN)


def neighbours(batch: Batch, far: int) -> Iterator[tuple[slice, slice, Tensor]]:
    """Words of a batch and others some places from them, and which of these pairs are near each other, that stay."""
    there, length = batch["there"], batch["tokens"].shape[1]
    radius = 1 + (draw(batch["dice"], length, RADIUS) * far).long()
    for words, others in directions(length, far):
        both = there[:, words] & there[:, others] & (radius[:, words] >= abs(words.start - others.start))
        if "documents" in batch:
            both = both & (batch["documents"][:, words] == batch["documents"][:, others])
        yield words, others, both


def directions(length: int, near: int) -> Iterator[tuple[slice, slice]]:
    """Words and others so many places behind or before them, for every distance."""
    for far in range(1, min(near, length - 1) + 1):
        one, two = slice(0, length - far), slice(far, length)
        yield one, two
        yield two, one


def shares_of(counts: Tensor) -> Tensor:
    """The share of each word of all words."""
    return counts / counts.sum().clamp(min=1)


def ladder_of(counts: Tensor) -> Tensor:
    """How likely each word and those before it are drawn by chance."""
    chances = shares_of(counts)
    chances[: UNKNOWN + 1] = 0
    return chances.pow(FLATTER).cumsum(0)


def pair_weights(counts: Tensor) -> Tensor:
    """How much pairs weigh by how often they stand near each other: nothing where there is none."""
    return (counts / MOST).clamp(max=1).pow(POWER)


def log_counts(counts: Tensor) -> Tensor:
    """The logarithms of counts."""
    return counts.clamp(min=1e-6).log()
