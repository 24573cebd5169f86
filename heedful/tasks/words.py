"""Vectors of words, asked for neighbours and for what is to one word as another is to a third."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.crops import Stream
from heedful.data.data_spec import DataSpec
from heedful.data.splits import Splits
from heedful.errors import Refusal, nearest
from heedful.looking.maps import Map
from heedful.looking.page import Example, Samples
from heedful.models import Spec
from heedful.models.numerics import unit
from heedful.models.specs import UNKNOWN
from heedful.models.text.word_vectors import WordVectors
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Neighbours, Result
from heedful.tasks.corpus import Corpus

BEST = 5  # neighbours that are told
DRAWN = 15  # neighbours of a picture
FIRST = 8  # words of a crop, among which one is shown


class Words(Corpus):
    """Learns a vector for each word of texts; asked for the nearest words, or with three for a fourth."""

    family: ClassVar[str] = "word_vectors"
    watch: ClassVar[str] = "skill"
    input: ClassVar[str] = "a word, for those nearest; or three, for what is to the third as the second is to the first"

    biased: ClassVar[bool]  # whether its model is GloVe's

    near, negatives, frequent = 5, 5, 0.0  # as the data say
    counts: Tensor | None = None

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Any]]:
        task, splits = super().open(data, seed)
        if task.tokenizer.kind != "words":
            raise Refusal(f"data.tokenizer={data.tokenizer} makes parts of words; use words, as words(size=20000)")
        stream: Stream = splits.train[0].stream
        task.counts = torch.from_numpy(np.bincount(stream.ids[: stream.count], minlength=len(task.tokenizer))).float()
        return task, splits

    def asks(self, data: DataSpec) -> None:
        self.near, self.negatives, self.frequent = data.near, data.negatives, data.frequent

    def numbers(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer), "biased": self.biased}

    def state(self) -> dict[str, Any]:
        return super().state() | {"near": self.near, "negatives": self.negatives, "frequent": self.frequent}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        task = super().read(folder, state)
        task.asks(DataSpec(**{key: state[key] for key in ("near", "negatives", "frequent")}))
        return task

    def suits(self, spec: Spec) -> None:
        return

    def length(self, sample: Any) -> int:
        return 1

    def prepare(self, model: nn.Module) -> None:
        assert isinstance(model, WordVectors) and self.counts is not None
        model.counts.copy_(self.counts)

    # ------------------------------------------------------------------ asking

    def known(self, text: str) -> list[int]:
        """The ids of one word or three."""
        words = text.split()
        if len(words) not in (1, 3):
            raise Refusal(f"the input has {len(words)} words; give {self.input}")
        ids = [self.tokenizer.encode(word) for word in words]
        for word, found in zip(words, ids, strict=True):
            if len(found) != 1 or found[0] <= UNKNOWN:
                meant = nearest(word, self.names[UNKNOWN + 1 :])
                raise Refusal(f"{word!r} is no word that was learned{meant or ';'} give one of the texts'")
        return [found[0] for found in ids]

    @cached_property
    def names(self) -> list[str]:
        """The words, by their ids."""
        return [piece.strip() for piece in self.tokenizer.pieces(range(len(self.tokenizer)))]

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        names = self.names
        for ids in read_all(inputs, self.known):
            yield Neighbours(tuple((names[at], alike) for at, alike in self.found(model, ids, BEST)))

    @torch.no_grad()
    def found(self, model: nn.Module, ids: Sequence[int], count: int) -> list[tuple[int, float]]:
        """The words nearest to one, or to the sum of the second and third less the first, by the cosine."""
        assert isinstance(model, WordVectors)
        vectors = unit(model.vectors.float())
        wanted = vectors[ids[0]] if len(ids) == 1 else vectors[ids[1]] - vectors[ids[0]] + vectors[ids[2]]
        alike = vectors @ unit(wanted)
        alike[[*range(UNKNOWN + 1), *ids]] = -torch.inf
        best = alike.topk(min(count, len(alike) - UNKNOWN - 1 - len(set(ids))))
        return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        """How near the words nearest to one are to each other: one picture, for nothing is attended to."""
        assert isinstance(model, WordVectors)
        ids = self.known(text)
        shown = [*ids, *(at for at, _ in self.found(model, ids, DRAWN))]
        vectors = unit(model.vectors[shown].float())
        words = tuple(self.names[at] for at in shown)
        cosines = (vectors @ vectors.T).clamp(0, 1).cpu()[None]
        return Example(f"{text} → {next(self.predict(model, [text])).plain()}", (Map("cosine", cosines, words, words),))

    def show(self, model: nn.Module, samples: Sequence[Any]) -> Samples:
        names, words = self.names, list[int]()
        for sample in samples:
            words.append(self.word(sample, words))
        rows = tuple(
            (names[at], ", ".join(f"{names[one]} {alike:.2f}" for one, alike in self.found(model, [at], BEST)))
            for at in words
        )
        return Samples("Words of texts it never saw", ("word", "nearest"), rows)

    def word(self, sample: Any, shown: Sequence[int] = ()) -> int:
        """The word that stands for a crop: the longest of its first, and one that was not shown, where there is one."""
        found = self.standing(sample)
        return max(found, key=lambda at: (at not in shown, len(self.names[at])), default=UNKNOWN + 1)

    def standing(self, sample: Any) -> list[int]:
        """The words that may stand for a sample."""
        ids = sample.stream.tokens(slice(sample.start, min(sample.start + FIRST, sample.stream.count)))
        return [int(at) for at in ids if at > UNKNOWN]

    def write_input(self, sample: Any) -> str:
        return self.names[self.word(sample)]
