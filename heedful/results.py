"""Results (predictions): what a model answers, as types that say themselves in a line, as JSON and on a page."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from heedful.errors import Refusal, unknown_word
from heedful.looking import page
from heedful.looking.page import Curve, Curves, Figures, Section

SHOWN = 5  # classes of a label on a page


@dataclass(frozen=True)
class Result(ABC):
    """Prediction: a value with a type. `Result.read(one.json()) == one`, for every kind there is."""

    kinds: ClassVar[dict[str, type[Result]]] = {}
    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.kind = cls.__name__.lower()
        known = Result.kinds.get(cls.kind)
        if known is not None and known.__module__ != cls.__module__:
            raise Refusal(f"results of kind {cls.kind!r} are those of {known.__module__}; give yours another name")
        Result.kinds[cls.kind] = cls

    @abstractmethod
    def plain(self) -> str:
        """The answer in one line, for a terminal."""

    def scored(self) -> str:
        """The answer in one line, as one of several: with its score, where it has one."""
        return self.plain()

    def json(self) -> dict[str, Any]:
        """The answer for a program: its kind, and all that it holds."""
        return {"kind": self.kind, **asdict(self)}

    def section(self) -> Section:
        """The answer as a part of a page."""
        return page.Text("Answer", (self.plain(),))

    @staticmethod
    def read(given: dict[str, Any]) -> Result:
        """The result that a program was given as JSON."""
        values = {key: freeze(value) for key, value in given.items() if key != "kind"}
        if given.get("kind") not in Result.kinds:
            raise unknown_word("kind of result", str(given.get("kind")), Result.kinds)
        try:
            return Result.kinds[given["kind"]](**values)
        except TypeError as error:
            raise Refusal(f"this is no result of kind {given['kind']!r}: {error}; give it as it was written") from None


def freeze(value: Any) -> Any:
    """Lists as tuples, at any depth: what is frozen holds nothing that is not."""
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value


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

    def section(self) -> Section:
        best = sorted(self.chances or ((self.name, self.chance),), key=lambda one: -one[1])[:SHOWN]
        return Figures("Answer", tuple((name, f"{100 * chance:.1f} %", "") for name, chance in best))


@dataclass(frozen=True)
class Labels(Result):
    """Multi-label answer: several classes may hold at once, each with a probability of its own."""

    chances: tuple[tuple[str, float], ...]

    def plain(self) -> str:
        return "\t".join(f"{name} {chance:.4f}" for name, chance in self.chances)


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
class Tags(Result):
    """Token classification: a tag for each word."""

    words: tuple[str, ...]
    tags: tuple[str, ...]

    def plain(self) -> str:
        return " ".join(self.tags)


@dataclass(frozen=True)
class Span(Result):
    """Extractive answer: a span of the text that was read, by its characters; empty where there is none."""

    text: str = ""
    start: int | None = None
    end: int | None = None

    def plain(self) -> str:
        return self.text


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
        return Curves("Forecast", tuple(Curve(name, row, "value", along="step ahead") for name, row in named))
