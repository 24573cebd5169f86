"""Sequence classification: of which class a sequence of words is, such as ListOps and the pixels of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.collate import Batch, Collate, stack
from heedful.data.formats.labelled_line import Line
from heedful.data.near_duplicates import Content, Overlap, digests, overlaps
from heedful.data.readers.labelled_sequences import MADE, PIXELS, renumber, word_numbers
from heedful.data.readers.word_sequences import ListOps, Pixels, WordSequences, WordSplits
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps import Map, fitting
from heedful.looking.page import Example
from heedful.metrics.accuracy import Accuracy
from heedful.models import Spec
from heedful.models.numerics import device_of
from heedful.models.specs import BEGIN, UNKNOWN
from heedful.objectives.classification import Classification
from heedful.pipelines.classification_pipeline import Classes, Classifying
from heedful.pipelines.pipeline import can_be_looked_into, nonempty, unheard
from heedful.tasks.task import Task
from heedful.views.labelled_samples import LabelledSamples

FIRST = UNKNOWN + 1  # the id of the first word, behind the special tokens; -1 is a word that is unknown
SHORTEST = 16  # sequences are filled up to this, and from twice as many on to four lengths between powers of two
SHOWN = 160  # words of which every row is drawn; of longer sequences, where their beginning looks
TOLD = 80  # signs of a sequence in a table


@dataclass(frozen=True)
class SequenceLearned(Classes):
    """The words and the classes of sequences, and how long the longest is, with the token before it."""

    words: tuple[str, ...]
    longest: int

    @classmethod
    def fit(cls, splits: WordSplits, reader: Any, seed: int) -> Self:
        """Learns of the sequences to learn from; all of them are read whole."""
        longest = max(len(line.places) for line in (*splits.train, *splits.valid, *splits.test))
        return cls(tuple(sorted({line.label for line in splits.train})), splits.words, 1 + longest)

    @cached_property
    def number(self) -> dict[str, int]:
        """The place of each word."""
        return {word: at for at, word in enumerate(self.words)}

    @cached_property
    def alike(self) -> NDArray[np.intp]:
        """A number for each word, the same for words that differ in case or punctuation."""
        return np.unique(digests(self.words), return_inverse=True)[1]

    def facts(self) -> dict[str, Any]:
        return {"vocab": FIRST + len(self.words), "classes": len(self.labels)}

    def suited(self, spec: Spec) -> Self:
        if getattr(spec, "pool", None) == "each":
            cure = "this task wants one a sequence; use first or mean"
            raise Refusal(f"model.pool=each gives an answer a word and {cure}")
        return self

    def state(self) -> dict[str, Any]:
        return {"words": list(self.words), "labels": list(self.labels), "longest": self.longest}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return cls(cls.words_of(state, "labels"), cls.words_of(state, "words"), int(state["longest"]))


def check_lines(splits: WordSplits, learned: SequenceLearned) -> Splits[Line]:
    """The same sequences by the words that were learned, where all of them can be answered."""
    found = renumber(splits, splits.words, learned.words)
    for line in (*found.train, *found.valid, *found.test):
        learned.check(line.label, f"{line.where}: ")
    return found


@dataclass(frozen=True)
class SequenceCollate(Collate[SequenceLearned]):
    """Sequences as ids, a token before each, of which the model may make its answer (`model.pool=first`)."""

    even: ClassVar[bool] = True  # nearly: a batch is filled up here

    def length(self, sample: Line, learned: SequenceLearned) -> int:
        return 1 + len(sample.places)

    def batch(self, samples: Sequence[Line], learned: SequenceLearned) -> Batch:
        answer = torch.tensor([learned.labels.index(line.label) for line in samples])
        return {"tokens": tokens_of(samples, learned), "answer": answer}

    def overlaps(self, splits: Splits[Line], learned: SequenceLearned) -> tuple[Overlap, ...]:
        def contents(line: Line) -> dict[str, Content]:
            return {"sequences": learned.alike[line.places].tobytes()}

        return overlaps(splits, contents)

    def source_of(self, sample: Line) -> str:
        return sample.where

    def as_input(self, sample: Line, learned: SequenceLearned) -> str:
        return " ".join(learned.words[at] if at >= 0 else "?" for at in sample.places)


def tokens_of(lines: Sequence[Line], learned: SequenceLearned) -> Tensor:
    """Ids of sequences, each behind its first token, filled up so that their shapes are few: B T."""
    made = stack([FIRST + line.places.astype(np.int64) for line in lines], first=(BEGIN,))
    length = made.shape[1]
    step = max(SHORTEST, 1 << (length - 1).bit_length()) // 8
    room = min(max(SHORTEST, length + -length % step), max(learned.longest, length))
    return torch.nn.functional.pad(made, (0, room - length))


@dataclass(frozen=True)
class SequencePipeline(Classifying[SequenceLearned]):
    """Sequence classification: words with blanks between them become their likeliest class."""

    reads: ClassVar[tuple[str, ...]] = ("tokens",)
    at_once: ClassVar[int] = 50

    def accepts(self, given: Any, learned: SequenceLearned) -> Line:
        return Line(word_numbers(nonempty(given, self.input).split(), learned.number), "")

    def inputs(self, samples: Sequence[Line], learned: SequenceLearned) -> Batch:
        return {"tokens": tokens_of(samples, learned)}

    def warning(self, given: str, learned: SequenceLearned) -> str | None:
        strange = [word for word in given.split() if word not in learned.number]
        return f"{strange[0]!r} is a word that was never seen in training" if strange else None

    @torch.no_grad()
    def look(self, model: nn.Module, given: Any, learned: SequenceLearned) -> Example:
        can_be_looked_into(model)
        line = self.accepts(given, learned)
        answer = self.results(model, [line], learned, unheard)[0].name
        tokens = stack([FIRST + line.places.astype(np.int64)], first=(BEGIN,)).to(device_of(model))
        with look(model) as seen:
            model(tokens)
        words = ("<s>", *given.split())
        rows = range(len(words) if len(words) <= SHOWN else 1)
        maps = []
        for path in seen.paths:
            weights = seen.weights(path, rows=rows)[0].detach().float().cpu()
            who = fitting(words[: len(rows)], weights.shape[-2])
            maps.append(Map(path, weights, who, fitting(words, weights.shape[-1])))
        return Example(f"{shorten(given)} → {answer}", tuple(maps))


def shorten(text: str) -> str:
    """A sequence as a table has room for it."""
    return text if len(text) <= TOLD else f"{text[: TOLD - 4]} ..."


COLLATE = SequenceCollate()
TASK = Task(
    name="sequences",
    readers={MADE: ListOps, PIXELS: Pixels, "files": WordSequences},
    fit=SequenceLearned.fit,
    learned=SequenceLearned,
    encode=check_lines,
    collate=COLLATE,
    objective=Classification(reads=SequencePipeline.reads),
    metrics=(Accuracy(),),
    watch="accuracy",
    pipeline=SequencePipeline("words with blanks between them: [MAX 2 [MIN 4 7 ] 0 ]"),
    table=LabelledSamples(
        "Sequences it never saw", "sequence", lambda line, learned: shorten(COLLATE.as_input(line, learned))
    ),
    families=("predictor",),
)
