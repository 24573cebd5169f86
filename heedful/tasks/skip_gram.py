"""word2vec: the vector of a word tells which words stand near it from words by chance (Mikolov et al., 2013)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from heedful.data.collate import Batch, several, to
from heedful.data.crops import Crop
from heedful.data.transforms import draw
from heedful.models.numerics import device_of
from heedful.models.specs import UNKNOWN
from heedful.models.text.word_vectors import WordVectors
from heedful.tasks.closed import PLAIN, Terms
from heedful.tasks.words import Words

KEPT, RADIUS, CHANCE = 54, 55, 60  # purposes of dice; the last is the first of several
FLATTER = 0.75  # the power of counts by which words by chance are drawn
SIZE = 64  # crops that are scored at once


class SkipGram(Words):
    """Foretells the words near each word, among words by chance; scored by how much less is lost than without vectors.

    Each word looks 1 to `data.near` words far. Its `data.negatives` words by chance are shared by its neighbours, and
    words that are more frequent than `data.frequent` are left out now and then.
    """

    name: ClassVar[str] = "word2vec"
    keys: ClassVar[frozenset[str]] = Words.keys | {"near", "negatives", "frequent"}
    usual: ClassVar[float] = 0.5  # crops always have dice
    hides: ClassVar[bool] = True
    biased: ClassVar[bool] = False

    def batch(self, samples: Sequence[Crop]) -> Batch:
        return self.rows(samples, self.window)

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        assert isinstance(model, WordVectors)
        tokens, dice = batch["tokens"], batch["dice"]
        length, shares = tokens.shape[1], model.counts / model.counts.sum().clamp(min=1)
        keep = (self.frequent / shares.clamp(min=1e-12)).sqrt() if self.frequent else torch.ones_like(shares)
        there = (draw(dice, length, KEPT) < keep[tokens]) & (tokens > UNKNOWN)
        radius = 1 + (draw(dice, length, RADIUS) * self.near).long()
        total, near = torch.zeros((), device=tokens.device), torch.zeros(tokens.shape, device=tokens.device)
        for words, others in directions(length, self.near):
            both = there[:, words] & there[:, others] & (radius[:, words] >= abs(words.start - others.start))
            if "documents" in batch:
                both = both & (batch["documents"][:, words] == batch["documents"][:, others])
            total = total + (softplus(-model(tokens[:, words], tokens[:, others])) * both).sum()
            near[:, words] += both
        chances = shares.clone()
        chances[: UNKNOWN + 1] = 0
        ladder = chances.pow(FLATTER).cumsum(0)
        for at in range(self.negatives):
            drawn = torch.searchsorted(ladder, draw(dice, length, CHANCE + at) * ladder[-1], right=True)
            total = total + (softplus(model(tokens, drawn.clamp(max=len(ladder) - 1))) * near).sum()
        return total, near.sum()

    @torch.no_grad()
    def score(self, model: nn.Module, samples: Sequence[Crop]) -> dict[str, float]:
        model.eval()
        total, count = 0.0, 0.0
        for some in several(samples, SIZE):
            loss, pairs = self.loss(model, to(self.batch(some), device_of(model)))
            total, count = total + float(loss), count + float(pairs)
            self.tell(len(some))
        lost = total / max(1.0, count)
        return {"skill": 1 - lost / blind(self.negatives), "loss": lost}


def blind(negatives: int) -> float:
    """The loss of who knows how many words are by chance, and looks at none: one near word in so many and one."""
    return math.log(1 + negatives) + negatives * math.log(1 + 1 / negatives)


def directions(length: int, near: int) -> Iterator[tuple[slice, slice]]:
    """Words and others so many places behind or before them, for every distance."""
    for far in range(1, min(near, length - 1) + 1):
        one, two = slice(0, length - far), slice(far, length)
        yield one, two
        yield two, one
