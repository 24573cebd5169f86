"""A generated answer: the tokens that a model wrote, and their log-probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """A written target without BEGIN and END; `score` sums the log-probabilities of its tokens and of END."""

    tokens: tuple[int, ...]
    score: float
    finished: bool  # whether the model ended it; otherwise it was cut at the limit

    @classmethod
    def of(cls, written: Sequence[int], score: float, ends: Sequence[int]) -> Answer:
        """The answer of what stands after BEGIN, with END where the model came to it."""
        finished = written[-1] in ends
        return cls(tuple(written[:-1] if finished else written), score, finished)

    def ranked(self, length_penalty: float) -> float:
        """The score by which answers of unequal length are compared."""
        return self.score / penalty(len(self.tokens) + self.finished, length_penalty)


def penalty(length: int, power: float) -> float:
    """What a score is divided by, ((5 + length) / 6)^power, where `length` counts END (GNMT: Wu et al., 2016)."""
    return float(((5 + length) / 6) ** power)
