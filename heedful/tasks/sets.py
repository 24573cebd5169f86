"""Of which class a set of vectors is, whatever the order of its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from heedful.data.collate import Batch, several, to
from heedful.data.data_spec import DataSpec, Sides
from heedful.data.formats import line_files
from heedful.data.near_duplicates import Content
from heedful.data.splits import Splits, divided, opened
from heedful.data.toys import series_sets
from heedful.data.toys.series_sets import Labelled, Numbers
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps_of_seen import maps
from heedful.looking.page import Example, Samples
from heedful.models import Spec
from heedful.models.numerics import device_of, finite, precise
from heedful.models.sets.predictor import PredictorSpec
from heedful.pipelines.reading_inputs import read_all
from heedful.results import Label, Result
from heedful.tasks.closed import PLAIN, Task, Terms
from heedful.tasks.numbers import read_rows, words, write_rows


class Sets(Task):
    """Says of a set of vectors of which class it is; scored by the share that is right."""

    name: ClassVar[str] = "sets"
    family: ClassVar[str] = "predictor"
    watch: ClassVar[str] = "accuracy"
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing"})
    keys: ClassVar[frozenset[str]] = frozenset({"split_seed", "shortest", "longest", "too_long"})
    ordered: ClassVar[bool] = False
    input: ClassVar[str] = "vectors as numbers with commas, a semicolon between two vectors: 0.1,0.2; 0.3,0.4"

    def __init__(self, labels: Sequence[str], channels: int) -> None:
        self.labels, self.channels = tuple(labels), channels

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Labelled]]:
        splits = labelled(data, seed)
        if not splits.train:
            raise Refusal("data.train is not given; add data.train=...")
        task = cls(sorted({sample.label for sample in splits.train}), splits.train[0].vectors.shape[1])
        return task, task.checked(splits)

    def reopen(self, data: DataSpec, seed: int) -> Splits[Labelled]:
        return self.checked(labelled(data, seed))

    def checked(self, splits: Splits[Labelled]) -> Splits[Labelled]:
        """The same sets, where all of them can be read and answered."""
        for sample in (*splits.train, *splits.valid, *splits.test):
            width = sample.vectors.shape[1]
            if sample.label not in self.labels:
                known = ", ".join((*self.labels[:9], "...") if len(self.labels) > 10 else self.labels)
                raise Refusal(f"label {sample.label!r} is not one that is trained on ({known}); train on it or drop it")
            if width != self.channels:
                raise Refusal(f"a set has vectors of {width} numbers and the model takes {self.channels}; drop it")
        return splits

    def suits(self, spec: Spec) -> None:
        if isinstance(spec, PredictorSpec) and spec.pool == "each":
            raise Refusal("model.pool=each gives an answer a member and this task wants one a set; use mean or first")

    def numbers(self) -> dict[str, int]:
        return {"channels": self.channels, "classes": len(self.labels)}

    def length(self, sample: Labelled) -> int:
        return len(sample.vectors)

    def batch(self, samples: Sequence[Labelled]) -> Batch:
        return pad([sample.vectors for sample in samples]) | {
            "answer": torch.tensor([self.labels.index(sample.label) for sample in samples])
        }

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        logits = precise(model(batch["vectors"], batch["lengths"]))
        total = cross_entropy(logits, batch["answer"], reduction="sum", label_smoothing=terms.smoothing)
        return total, torch.tensor(len(logits))

    def score(self, model: nn.Module, samples: Sequence[Labelled]) -> dict[str, float]:
        answers = self.answers(model, [sample.vectors for sample in samples])
        right = sum(sample.label == said.name for sample, said in zip(samples, answers, strict=True))
        return {"accuracy": right / max(1, len(samples))}

    @torch.no_grad()
    def answers(self, model: nn.Module, sets: Sequence[Any], size: int = 500) -> list[Label]:
        """The likeliest class of each set and its chance."""
        model.eval()
        made: list[Label] = []
        for start in range(0, len(sets), size):
            batch = to(pad(sets[start : start + size]), device_of(model))
            chances = finite(model(batch["vectors"], batch["lengths"]).float()).softmax(-1).cpu()
            made += [Label.among(self.labels, row) for row in chances]
            self.tell(len(chances))
        return made

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        for group in several(read_all(inputs, self.known)):
            yield from self.answers(model, group)

    def known(self, text: str) -> Numbers:
        """The vectors of an input: T C."""
        return read_rows(text, self.channels, self.input)

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        vectors = self.known(text)
        answer = self.answers(model, [vectors])[0].name
        batch = to(pad([vectors]), device_of(model))
        with look(model) as seen:
            model(batch["vectors"], batch["lengths"])
        return Example(f"{len(vectors)} vectors → {answer}", maps(seen, lambda path: (words(vectors), words(vectors))))

    def show(self, model: nn.Module, samples: Sequence[Labelled]) -> Samples:
        answers = self.answers(model, [sample.vectors for sample in samples])
        rows = tuple(
            (self.write_input(sample), sample.label, said.name, f"{said.chance:.3f}")
            for sample, said in zip(samples, answers, strict=True)
        )
        right = tuple(label == answer for _, label, answer, _ in rows)
        return Samples("Sets it never saw", ("vectors", "class", "said", "chance"), rows, right)

    def contents(self, sample: Labelled) -> dict[str, Content]:
        return {"sets": sample.vectors.tobytes()}

    def write_input(self, sample: Labelled) -> str:
        return write_rows(sample.vectors)

    def state(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "channels": self.channels}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        if not all(isinstance(label, str) for label in state["labels"]):
            raise TypeError("labels should be words")
        return cls(state["labels"], int(state["channels"]))


def pad(sets: Sequence[Any]) -> Batch:
    """Sets of unequal size as one tensor (B T C), zeros at the end, and how many members each has."""
    lengths = torch.tensor([len(vectors) for vectors in sets])
    vectors = torch.zeros(len(sets), int(lengths.max()), sets[0].shape[1])
    for at, rows in enumerate(sets):
        vectors[at, : len(rows)] = torch.as_tensor(rows)
    return {"vectors": vectors, "lengths": lengths}


def labelled(data: DataSpec, seed: int) -> Splits[Labelled]:
    """Sets made on the fly, or a user's own."""
    if data.name == "clouds":
        return series_sets.clouds(data, seed)

    def divide(all: Sequence[Labelled], what: str) -> Splits[Labelled]:
        return divided(all, lambda one: one.vectors.tobytes(), what, data.split_seed)

    return opened(data, sets, divide, ("clouds",))


def sets(path: str | Sides) -> list[Labelled]:
    """The sets of a CSV: a line a member, with the set's name, its label, then numbers."""
    if isinstance(path, Sides):
        raise Refusal("sets are read from one CSV, not from a source and a target; give data=sets.csv")
    members: dict[str, tuple[str, list[list[float]]]] = {}
    for number, (name, label), row in line_files.numbers(path, labelled=2):
        first, rows = members.setdefault(name, (label, []))
        if label != first:
            raise Refusal(
                f"{path}, line {number}: set {name!r} is labelled {label!r} here and {first!r} before; "
                "give all its lines one label, or the sets two names"
            )
        rows.append(row)
    if not members:
        raise Refusal(f"{path} holds no set; write a line a member: set,label,number,number,...")
    return [Labelled(np.array(rows, dtype=np.float32), label) for label, rows in members.values()]
