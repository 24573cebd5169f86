"""A table of samples with their class, the class that a model says, and how likely it holds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.looking.page import Samples
from heedful.results import Label


@dataclass(frozen=True)
class LabelledSamples:
    """Table of samples that have a `label`: what they are called, what they hold, and with how many digits."""

    title: str
    what: str
    written: Callable[[Any, Any], str]  # a sample, and what was learned, as people read it
    digits: int = 3

    def __call__(self, samples: Sequence[Any], results: Sequence[Label], learned: Any) -> Samples:
        rows = tuple(
            (self.written(one, learned), one.label, said.name, f"{said.chance:.{self.digits}f}")
            for one, said in zip(samples, results, strict=True)
        )
        right = tuple(label == said for _, label, said, _ in rows)
        return Samples(self.title, (self.what, "class", "said", "chance"), rows, right)
