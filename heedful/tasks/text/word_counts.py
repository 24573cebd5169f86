"""Words and their counts: what tasks on vectors of words keep of texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, Field
from torch import Tensor

from heedful.data.readers.corpus import Neighbourly
from heedful.data.readers.reader import Share
from heedful.data.splits import Splits
from heedful.data.texts_on_disk import Text
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.pipelines.word_neighbours import HasWords, names_of, word_of
from heedful.tasks.text.cropping import CropCollate, CropLearned


class Negatives(BaseModel):
    """The keys of which words are told from one another."""

    negatives: int = Field(5, ge=1, le=100)
    """The number of random words that each true neighbour is told from (negative sampling)."""
    frequent: Share = 0.001
    """The subsampling threshold: words with a larger share of the text are skipped at random; 0 for none."""


class Neighbourhood(Negatives, Neighbourly):
    """All that is kept of the keys of texts of which words are learned."""


@dataclass(frozen=True)
class WordLearned(CropLearned):
    """The words of texts, how often each stands there, and what of their neighbours is learned."""

    biased: ClassVar[bool]  # whether its model is GloVe's

    near: int = 5
    negatives: int = 5
    frequent: float = 0.001
    counts: Tensor | None = None  # where they were counted: a model that was learned has its own

    @classmethod
    def of_words(cls, splits: Splits[Text], reader: Any, seed: int, **own: Any) -> Self:
        """What is learned of texts whose tokens are whole words."""
        made = cls.of_texts(splits, reader, seed, near=reader.near, **own)
        if made.tokenizer.kind != "words":
            raise Refusal(f"data.tokenizer={reader.tokenizer} makes parts of words; use words, as words(size=20000)")
        return made

    def facts(self) -> dict[str, Any]:
        return {"vocab": len(self.tokenizer), "biased": self.biased}

    def suited(self, spec: Spec) -> Self:
        return self

    def state(self) -> dict[str, Any]:
        return super().state() | {"near": self.near, "negatives": self.negatives, "frequent": self.frequent}

    @classmethod
    def kept_in(cls, folder: Path, state: dict[str, Any]) -> dict[str, Any]:
        kept = Neighbourhood.model_validate({key: state[key] for key in ("near", "negatives", "frequent")}, strict=True)
        return super().kept_in(folder, state) | kept.model_dump()


@dataclass(frozen=True)
class WordCollate(CropCollate[WordLearned]):
    """Samples that a word stands for."""

    def length(self, sample: Any, learned: WordLearned) -> int:
        return 1

    def as_input(self, sample: HasWords, learned: WordLearned) -> str:
        names = names_of(learned.tokenizer)
        return names[word_of(sample, names)]
