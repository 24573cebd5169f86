"""Exact match and F1 of answers that stand in a text, as SQuAD's program scores them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from heedful.data.formats.squad import Question
from heedful.metrics.metric import Metric
from heedful.results import Span

ARTICLES = re.compile(r"\b(a|an|the)\b")
MARKS = str.maketrans("", "", string.punctuation)


@dataclass
class ExactAnswers(Metric[Any]):
    """Exact match, and F1 of words: each sample's `read` is a question, and each result a span."""

    names: ClassVar[tuple[str, ...]] = ("exact", "f1")
    share: ClassVar[bool] = True
    counts_right: ClassVar[tuple[str, ...]] = ("exact",)

    exact: list[float] = field(default_factory=list)
    f1: list[float] = field(default_factory=list)

    def update(self, samples: Sequence[Any], seen: Sequence[Span], learned: Any) -> None:
        for one, said in zip(samples, seen, strict=True):
            exact, f1 = judge_answer(one.read, said.text)
            self.exact.append(exact)
            self.f1.append(f1)

    def merge(self, other: Self) -> None:
        self.exact, self.f1 = self.exact + other.exact, self.f1 + other.f1

    def compute(self) -> dict[str, float]:
        return {name: sum(made) / max(1, len(made)) for name, made in (("exact", self.exact), ("f1", self.f1))}


def normalise(text: str) -> str:
    """An answer without case, punctuation and articles, as SQuAD's own program compares them."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(MARKS)).split())


def judge_answer(question: Question, said: str) -> tuple[float, float]:
    """Whether what was said is exact, and its F1 by words, of the answer that it is nearest to."""
    known = [normalise(text) for text, _ in question.answers]
    known = [text for text in known if text] or [""]
    return max(float(normalise(said) == text) for text in known), max(overlap(normalise(said), text) for text in known)


def overlap(said: str, known: str) -> float:
    """F1 of the words of two answers."""
    one, two = said.split(), known.split()
    if not one or not two:
        return float(one == two)
    shared = sum((Counter(one) & Counter(two)).values())
    return 2 * shared / (len(one) + len(two))
