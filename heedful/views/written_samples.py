"""A table of samples with what should be written to them, and what a model writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heedful.data.encoded_pairs import Encoded
from heedful.looking.page import Samples
from heedful.results import Text


@dataclass(frozen=True)
class WrittenSamples:
    """Table of pairs of texts: its title, what its sides are called, and whether answers are right or wrong."""

    title: str
    source: str = "source"
    target: str = "target"
    judged: bool = False

    def __call__(self, samples: Sequence[Encoded], results: Sequence[Text], learned: Any) -> Samples:
        pairs = list(zip(samples, results, strict=True))
        rows = tuple((one.texts.source, one.texts.target, said.text) for one, said in pairs)
        header = (self.source, self.target, "written")
        if not self.judged:
            return Samples(self.title, header, rows)
        return Samples(self.title, header, rows, tuple(said.tokens == tuple(one.target) for one, said in pairs))
