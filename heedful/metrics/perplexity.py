"""Log-likelihood of tokens, perplexity, bits per character, and the share of tokens that are the likeliest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import nn

from heedful.data.collate import alike, to
from heedful.data.collation import Collate
from heedful.metrics.metric import Heard, Metric
from heedful.models.numerics import device_of
from heedful.objectives.objective import Objective, combine, primary

ROOM = 8192  # tokens of a batch that is read and not written


@dataclass(frozen=True)
class TokenSums:
    """The sum of the losses of tokens and how many there are; and how many of those that are asked were right."""

    nats: float = 0.0
    tokens: int = 0
    right: int = 0
    asked: int = 0

    def __add__(self, other: TokenSums) -> TokenSums:
        right, asked = self.right + other.right, self.asked + other.asked
        return TokenSums(self.nats + other.nats, self.tokens + other.tokens, right, asked)

    @property
    def mean(self) -> float:
        """The mean loss of a token."""
        return self.nats / max(1, self.tokens)


@dataclass(frozen=True)
class TokenLosses:
    """The sum of the losses of samples that are read and not written, and how many tokens there are."""

    objective: Objective[Any]
    collate: Collate[Any]

    @torch.no_grad()
    def __call__(self, model: nn.Module, samples: Sequence[Any], learned: Any, heard: Heard) -> TokenSums:
        model.eval()
        sums = TokenSums()
        for places in alike([self.collate.length(sample, learned) for sample in samples], ROOM):
            batch = to(self.collate.batch([samples[at] for at in places], learned), device_of(model))
            losses = self.objective.losses(model, batch, learned)
            sums += TokenSums(float(combine(losses)), int(primary(losses).count))
        return sums


@dataclass
class OfTokens(Metric[Any]):
    """A score made of the losses of tokens, which its source sums."""

    sums: TokenSums = TokenSums()

    def update(self, samples: Sequence[Any], seen: TokenSums, learned: Any) -> None:
        self.sums += seen

    def merge(self, other: Self) -> None:
        self.sums += other.sums


@dataclass
class LogLikelihood(OfTokens):
    """The mean log-likelihood of a token, in nats."""

    names: ClassVar[tuple[str, ...]] = ("log_likelihood",)
    meaning: ClassVar[str] = "nats a token"

    def compute(self) -> dict[str, float]:
        return {"log_likelihood": -self.sums.mean}


@dataclass
class Perplexity(OfTokens):
    """Perplexity: the exponential of the mean loss of a token."""

    names: ClassVar[tuple[str, ...]] = ("perplexity",)
    more_is_better: ClassVar[bool] = False
    meaning: ClassVar[str] = "as if it chose among so many tokens"

    def compute(self) -> dict[str, float]:
        return {"perplexity": math.exp(min(self.sums.mean, 700.0))}


@dataclass
class BitsPerCharacter(OfTokens):
    """Bits per character: the losses of all tokens of a stream, over the characters of its texts."""

    names: ClassVar[tuple[str, ...]] = ("bits_per_character",)
    more_is_better: ClassVar[bool] = False
    meaning: ClassVar[str] = "bits"

    characters: int = 0

    def update(self, samples: Sequence[Any], seen: TokenSums, learned: Any) -> None:
        super().update(samples, seen, learned)
        self.characters = samples[0].stream.characters

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.characters = max(self.characters, other.characters)  # of one stream

    def compute(self) -> dict[str, float]:
        return {"bits_per_character": self.sums.nats / math.log(2) / max(1, self.characters)}


@dataclass
class HiddenTokens(OfTokens):
    """Accuracy of tokens that were hidden: the share of them of which the likeliest token is right."""

    names: ClassVar[tuple[str, ...]] = ("accuracy",)
    share: ClassVar[bool] = True

    def compute(self) -> dict[str, float]:
        return {self.names[0]: self.sums.right / max(1, self.sums.asked)}


@dataclass
class WrittenTokens(HiddenTokens):
    """Accuracy of the next token: the share of them that is the likeliest behind what stands before it."""

    names: ClassVar[tuple[str, ...]] = ("tokens",)
