"""Results (predictions): what a model answers, as types that say themselves in a line, as JSON and on a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from heedful.looking.page import Curve, Curves, Figures, Section
from heedful.typed_result import Result as Result
from heedful.typed_result import Unread as Unread

if TYPE_CHECKING:
    from heedful.looking.notebook import Row

AHEAD = "Each line is a channel of the series, as far ahead as the model foresees it."
SHOWN = 5  # classes of a label on a page


@dataclass(frozen=True)
class Text(Result):
    """Generated text, and what the search scores it by: the log-probability, perhaps with a penalty for its length."""

    text: str
    score: float | None = None
    tokens: tuple[int, ...] = field(default=(), compare=False, repr=False)  # that a model wrote it in, for who judges

    def json(self) -> dict[str, Any]:
        return {"kind": self.kind, "text": self.text, "score": self.score}

    def plain(self) -> str:
        return self.text

    def scored(self) -> str:
        return self.text if self.score is None else f"{self.text}\t{self.score:.4f}"


@dataclass(frozen=True)
class Label(Result):
    """Class label: the likeliest of all classes, with the probability of each."""

    name: str
    chance: float
    chances: tuple[tuple[str, float], ...] = ()

    @classmethod
    def among(cls, names: Sequence[str], chances: Tensor) -> Label:
        """The likeliest of several classes: C."""
        chance, best = chances.max(-1)
        return cls(names[int(best)], float(chance), tuple(zip(names, chances.tolist(), strict=True)))

    def plain(self) -> str:
        return self.name

    def scored(self) -> str:
        return f"{self.name}\t{self.chance:.4f}"

    def best(self, count: int) -> Sequence[Label]:
        known = self.chances or ((self.name, self.chance),)
        return [Label(name, chance) for name, chance in sorted(known, key=lambda one: -one[1])[:count]]

    def section(self) -> Section:
        return Figures("Answer", tuple((name, f"{100 * chance:.1f} %", "") for name, chance in self.shown()))

    def shown(self) -> list[tuple[str, float]]:
        """The likeliest classes that a page has room for, and their chances."""
        return [(one.name, one.chance) for one in self.best(SHOWN)]

    def rows(self) -> list[Row]:
        return [(name, f"{100 * chance:.1f} %", chance) for name, chance in self.shown()]


@dataclass(frozen=True)
class Labels(Result):
    """Multi-label answer: several classes may hold at once, each with a probability of its own."""

    chances: tuple[tuple[str, float], ...]

    def plain(self) -> str:
        return "\t".join(f"{name} {chance:.4f}" for name, chance in self.chances)

    def best(self, count: int) -> Sequence[Label]:
        return Label("", 0.0, self.chances).best(count)

    def rows(self) -> list[Row]:
        return [(name, f"{100 * chance:.1f} %", chance) for name, chance in self.chances]


@dataclass(frozen=True)
class Number(Result):
    """Regression: one number."""

    value: float

    def plain(self) -> str:
        return f"{self.value:.6g}"


@dataclass(frozen=True)
class Score(Number):
    """Score: a number for how well something went, or how alike two texts are."""

    def plain(self) -> str:
        return f"{self.value:.4f}"


@dataclass(frozen=True)
class Entity:
    """Entity: a span of tagged words by its kind, its characters in the text and its probability."""

    kind: str
    text: str
    start: int
    end: int
    chance: float | None = None


@dataclass(frozen=True)
class Tags(Result):
    """Token classification: a tag for each word, the entities that tags make, and how likely all tags are together."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    chance: float | None = None
    spans: tuple[Entity, ...] = ()

    def __post_init__(self) -> None:
        read = tuple(Entity(**one) if isinstance(one, dict) else one for one in self.spans)  # as JSON has them
        object.__setattr__(self, "spans", read)

    def plain(self) -> str:
        return " ".join(self.tags)

    def scored(self) -> str:
        spans = (f"{one.kind} {one.text} {one.start}:{one.end} {one.chance or 0:.4f}" for one in self.spans)
        return "\t".join((self.plain(), *spans, f"{self.chance or 0:.4f}"))

    def rows(self) -> list[Row]:
        return [*zip(self.words, self.tags, strict=True)]


@dataclass(frozen=True)
class Span(Result):
    """Extractive answer: a span of the text that was read, by its characters; empty where there is none."""

    text: str = ""
    start: int | None = None
    end: int | None = None
    chance: float | None = None

    def plain(self) -> str:
        return self.text

    def scored(self) -> str:
        return f"{self.text}\t{'' if self.start is None else f'{self.start}:{self.end}'}\t{self.chance or 0:.4f}"


@dataclass(frozen=True)
class Vector(Result):
    """Embedding: the vector of a text or an image."""

    values: tuple[float, ...]

    def plain(self) -> str:
        return json.dumps([round(value, 8) for value in self.values])


@dataclass(frozen=True)
class Neighbours(Result):
    """Nearest neighbours: the words nearest to what was asked, by the cosine."""

    near: tuple[tuple[str, float], ...]

    def plain(self) -> str:
        return ", ".join(f"{word} {cosine:.3f}" for word, cosine in self.near)

    def rows(self) -> list[Row]:
        return [(word, f"{cosine:.3f}", max(0.0, cosine)) for word, cosine in self.near]


@dataclass(frozen=True)
class ImageTokens(Result):
    """Image tokens (codes): the token of each patch, row by row."""

    tokens: tuple[int, ...]

    def plain(self) -> str:
        return " ".join(map(str, self.tokens))


@dataclass(frozen=True)
class Series(Result):
    """Forecast: the steps to come, each with a number for every channel."""

    steps: tuple[tuple[float, ...], ...]

    def plain(self) -> str:
        return "; ".join(",".join(str(np.float32(value)) for value in step) for step in self.steps)

    def section(self) -> Section:
        rows = [tuple((at + 1.0, value) for at, value in enumerate(row)) for row in zip(*self.steps, strict=True)]
        named = ((f"channel {number}", row) for number, row in enumerate(rows, 1))
        return Curves("Forecast", tuple(Curve(name, row, "value", along="step ahead") for name, row in named), AHEAD)
