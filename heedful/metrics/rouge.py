"""ROUGE: how many words and pairs of words two texts share, and how long a row of words in one order (Lin, 2004)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self
from unicodedata import category

from heedful.metrics.metric import Metric
from heedful.results import Text

UNSPACED = re.compile(  # scripts without blanks between words, from Thai to Chinese
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
NAMES = ("rouge_1", "rouge_2", "rouge_l")


def words(text: str) -> list[str]:
    """The words of a text: rows of letters and digits, without case and stemming, as `rouge-score` takes English.

    Where a script has no blanks between words (Chinese, Japanese, Thai, ...), every sign is one.
    """
    return "".join(map(apart, text.lower())).split()


@cache
def apart(sign: str) -> str:
    """A sign of a word as it is, one that is a word of its own between blanks, and a blank for all others."""
    if UNSPACED.match(sign):
        return f" {sign} "
    return sign if sign.isalnum() or category(sign).startswith("M") else " "


def f1(shared: int, said: int, known: int) -> float:
    """The harmonic mean of the shares of what was said and of what is known."""
    return 2 * shared / (said + known) if shared else 0.0


def rows(text: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    """How often each row of so many words stands in a text."""
    return Counter(tuple(text[at : at + size]) for at in range(len(text) - size + 1))


def longest(one: Sequence[str], two: Sequence[str]) -> int:
    """How many words the longest row has that stands in both texts in order, gaps allowed."""
    best = [0] * (len(two) + 1)
    for word in one:
        before = 0
        for at, other in enumerate(two, 1):
            before, best[at] = best[at], before + 1 if word == other else max(best[at], best[at - 1])
    return best[-1]


def rouge(said: str, known: str) -> dict[str, float]:
    """ROUGE-1, -2 and -L of a text against another, as F1."""
    one, two = words(said), words(known)
    made = {}
    for size, name in ((1, NAMES[0]), (2, NAMES[1])):
        ours, theirs = rows(one, size), rows(two, size)
        made[name] = f1((ours & theirs).total(), ours.total(), theirs.total())
    made[NAMES[2]] = f1(longest(one, two), len(one), len(two))
    return made


@dataclass
class Rouge(Metric[Any]):
    """ROUGE-1, -2 and -L: the mean over samples with a target in `texts`."""

    names: ClassVar[tuple[str, ...]] = NAMES
    share: ClassVar[bool] = True

    found: list[dict[str, float]] = field(default_factory=list)

    def update(self, samples: Sequence[Any], seen: Sequence[Text], learned: Any) -> None:
        pairs = zip(samples, seen, strict=True)
        self.found = [*self.found, *(rouge(said.text, sample.texts.target) for sample, said in pairs)]

    def merge(self, other: Self) -> None:
        self.found = self.found + other.found

    def compute(self) -> dict[str, float]:
        return mean(self.found)


def mean(found: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each over several texts."""
    return {name: sum(one[name] for one in found) / max(1, len(found)) for name in NAMES}
