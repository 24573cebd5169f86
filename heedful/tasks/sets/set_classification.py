"""Set classification: of which class a set of vectors is, whatever the order of its members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import nn

from heedful.data.collate import Batch, Collate, to
from heedful.data.near_duplicates import Content
from heedful.data.readers.vector_sets import Clouds, VectorSets
from heedful.data.splits import Splits
from heedful.data.toys.series_sets import Labelled, Numbers
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps import maps_of_seen
from heedful.looking.page import Example
from heedful.metrics.accuracy import Accuracy
from heedful.models import Spec
from heedful.models.numerics import device_of
from heedful.objectives.classification import Classification
from heedful.pipelines.classification_pipeline import Classes, Classifying
from heedful.pipelines.number_rows import rows_of, words, write_rows
from heedful.pipelines.pipeline import unheard
from heedful.tasks.task import Task
from heedful.views.labelled_samples import LabelledSamples

READS = ("vectors", "lengths")


@dataclass(frozen=True)
class SetLearned(Classes):
    """The classes of sets, and how many numbers their vectors have."""

    channels: int

    @classmethod
    def fit(cls, splits: Splits[Labelled], reader: Any, seed: int) -> Self:
        """Learns of the sets to learn from."""
        labels = sorted({sample.label for sample in splits.train})
        return cls(tuple(labels), splits.train[0].vectors.shape[1])

    def facts(self) -> dict[str, Any]:
        return {"channels": self.channels, "classes": len(self.labels)}

    def suited(self, spec: Spec) -> Self:
        if getattr(spec, "pool", None) == "each":
            raise Refusal("model.pool=each gives an answer a member and this task wants one a set; use mean or first")
        return self

    def state(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "channels": self.channels}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        return cls(cls.words_of(state, "labels"), int(state["channels"]))


def check_sets(splits: Splits[Labelled], learned: SetLearned) -> Splits[Labelled]:
    """The same sets, where all of them can be read and answered."""
    for sample in (*splits.train, *splits.valid, *splits.test):
        learned.check(sample.label)
        if (width := sample.vectors.shape[1]) != learned.channels:
            raise Refusal(f"a set has vectors of {width} numbers and the model takes {learned.channels}; drop it")
    return splits


@dataclass(frozen=True)
class SetCollate(Collate[SetLearned]):
    """Sets of unequal size as one tensor (B T C), zeros at the end, and how many members each has."""

    def length(self, sample: Labelled, learned: SetLearned) -> int:
        return len(sample.vectors)

    def batch(self, samples: Sequence[Labelled], learned: SetLearned) -> Batch:
        answer = torch.tensor([learned.labels.index(sample.label) for sample in samples])
        return pad_sets([sample.vectors for sample in samples]) | {"answer": answer}

    def contents(self, sample: Labelled) -> dict[str, Content]:
        return {"sets": sample.vectors.tobytes()}

    def as_input(self, sample: Labelled, learned: SetLearned) -> str:
        return write_rows(sample.vectors)


@dataclass(frozen=True)
class SetPipeline(Classifying[SetLearned]):
    """Set classification: the rows of a set become its likeliest class."""

    reads: ClassVar[tuple[str, ...]] = READS

    def accepts(self, given: Any, learned: SetLearned) -> Labelled:
        return Labelled(rows_of(given, learned.channels, self.input), "")

    def inputs(self, samples: Sequence[Labelled], learned: SetLearned) -> Batch:
        return pad_sets([sample.vectors for sample in samples])

    @torch.no_grad()
    def look(self, model: nn.Module, given: Any, learned: SetLearned) -> Example:
        sample = self.accepts(given, learned)
        answer = self.results(model, [sample], learned, unheard)[0].name
        batch = to(self.inputs([sample], learned), device_of(model))
        with look(model) as seen:
            model(*(batch[name] for name in READS))
        rows = words(sample.vectors)
        return Example(f"{len(rows)} vectors → {answer}", maps_of_seen(seen, lambda path: (rows, rows)))


def pad_sets(sets: Sequence[Numbers]) -> Batch:
    """Sets of unequal size as one tensor (B T C), zeros at the end, and how many members each has."""
    lengths = torch.tensor([len(vectors) for vectors in sets])
    vectors = torch.zeros(len(sets), int(lengths.max()), sets[0].shape[1])
    for at, rows in enumerate(sets):
        vectors[at, : len(rows)] = torch.as_tensor(rows)
    return {"vectors": vectors, "lengths": lengths}


COLLATE = SetCollate()
TASK = Task(
    name="sets",
    readers={"clouds": Clouds, "files": VectorSets},
    fit=SetLearned.fit,
    learned=SetLearned,
    encode=check_sets,
    collate=COLLATE,
    objective=Classification(reads=READS),
    metrics=(Accuracy(),),
    watch="accuracy",
    pipeline=SetPipeline("vectors as numbers with commas, a semicolon between two vectors: 0.1,0.2; 0.3,0.4"),
    table=LabelledSamples("Sets it never saw", "vectors", COLLATE.as_input),
    families=("predictor",),
    ordered=False,
)
