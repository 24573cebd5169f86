"""Of which class a sequence of words is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from heedful.data.collate import Batch, several, stack, to
from heedful.data.data_spec import DataSpec
from heedful.data.formats.labelled_line import Line
from heedful.data.formats.labelled_sequences import numbered, renumbered, sequences
from heedful.data.near_duplicates import Content, digests
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.maps import Map
from heedful.looking.maps_of_seen import fitting
from heedful.looking.page import Example, Samples
from heedful.models import Spec
from heedful.models.numerics import device_of, finite, precise
from heedful.models.sets.predictor import PredictorSpec
from heedful.models.specs import BEGIN, UNKNOWN
from heedful.pipelines.reading_inputs import nonempty, read_all
from heedful.results import Label, Result
from heedful.tasks.closed import PLAIN, Task, Terms

FIRST = UNKNOWN + 1  # the id of the first word, behind the special tokens; -1 is a word that is unknown
SHORTEST = 16  # sequences are filled up to this, and from twice as many on to four lengths between powers of two
SHOWN = 160  # words of which every row is drawn; of longer sequences, where their beginning looks
TOLD = 80  # signs of a sequence in a table
AT_ONCE = 50  # sequences that are answered together


class Sequences(Task):
    """Says of a sequence of words of which class it is; scored by the share that is right.

    A token stands before every sequence, of which the model may make its answer (`model.pool=first`).
    """

    name: ClassVar[str] = "sequences"
    family: ClassVar[str] = "predictor"
    watch: ClassVar[str] = "accuracy"
    terms: ClassVar[frozenset[str]] = frozenset({"smoothing"})
    keys: ClassVar[frozenset[str]] = frozenset({"split_seed", "shortest", "longest", "too_long"})
    ordered: ClassVar[bool] = True
    even: ClassVar[bool] = True  # nearly: a batch is filled up here
    input: ClassVar[str] = "words with blanks between them: [MAX 2 [MIN 4 7 ] 0 ]"

    def __init__(self, words: Sequence[str], labels: Sequence[str], longest: int) -> None:
        self.words, self.labels, self.longest = tuple(words), tuple(labels), longest
        self.word = {word: at for at, word in enumerate(self.words)}
        self.label = {label: at for at, label in enumerate(self.labels)}

    @classmethod
    def open(cls, data: DataSpec, seed: int) -> tuple[Self, Splits[Line]]:
        words, splits = sequences(data, seed)
        if not splits.train:
            raise Refusal("data.train is not given; add data.train=...")
        longest = max(len(line.places) for line in (*splits.train, *splits.valid, *splits.test))
        task = cls(words, sorted({line.label for line in splits.train}), 1 + longest)
        return task, task.checked(splits)

    def reopen(self, data: DataSpec, seed: int) -> Splits[Line]:
        words, splits = sequences(data, seed)
        return self.checked(renumbered(splits, words, self.words))

    def checked(self, splits: Splits[Line]) -> Splits[Line]:
        """The same sequences, where all of them can be answered."""
        for line in (*splits.train, *splits.valid, *splits.test):
            if line.label not in self.label:
                known = ", ".join((*self.labels[:9], "...") if len(self.labels) > 10 else self.labels)
                said = f"{line.where}: label {line.label!r} is not one that is trained on ({known})"
                raise Refusal(f"{said}; train on it or drop it")
        return splits

    def contents(self, sample: Line) -> dict[str, Content]:
        return {"sequences": self.alike[sample.places].tobytes()}

    @cached_property
    def alike(self) -> NDArray[np.intp]:
        """A number for each word, the same for words that differ in case or punctuation."""
        return np.unique(digests(self.words), return_inverse=True)[1]

    def suits(self, spec: Spec) -> None:
        if isinstance(spec, PredictorSpec) and spec.pool == "each":
            raise Refusal(
                "model.pool=each gives an answer a word and this task wants one a sequence; use first or mean"
            )

    def numbers(self) -> dict[str, int]:
        return {"vocab": FIRST + len(self.words), "classes": len(self.labels)}

    def length(self, sample: Line) -> int:
        return 1 + len(sample.places)

    def place(self, sample: Line) -> str:
        return sample.where

    def tokens(self, rows: Sequence[NDArray[Any]]) -> Tensor:
        """Ids of sequences, each behind its first token, filled up so that their shapes are few: B T."""
        made = stack([FIRST + row.astype(np.int64) for row in rows], first=(BEGIN,))
        length = made.shape[1]
        step = max(SHORTEST, 1 << (length - 1).bit_length()) // 8
        room = min(max(SHORTEST, length + -length % step), max(self.longest, length))
        return torch.nn.functional.pad(made, (0, room - length))

    def batch(self, samples: Sequence[Line]) -> Batch:
        return {
            "tokens": self.tokens([line.places for line in samples]),
            "answer": torch.tensor([self.label[line.label] for line in samples]),
        }

    def loss(self, model: nn.Module, batch: Batch, terms: Terms = PLAIN) -> tuple[Tensor, Tensor]:
        logits = precise(model(batch["tokens"]))
        total = cross_entropy(logits, batch["answer"], reduction="sum", label_smoothing=terms.smoothing)
        return total, torch.tensor(len(logits))

    # ------------------------------------------------------------------ answering

    def score(self, model: nn.Module, samples: Sequence[Line]) -> dict[str, float]:
        answers = self.answers(model, [line.places for line in samples])
        right = sum(line.label == said.name for line, said in zip(samples, answers, strict=True))
        return {"accuracy": right / max(1, len(samples))}

    @torch.no_grad()
    def answers(self, model: nn.Module, rows: Sequence[NDArray[Any]]) -> list[Label]:
        """The likeliest class of each sequence and its chance."""
        model.eval()
        made: list[Label] = []
        for group in several(rows, AT_ONCE):
            batch = to({"tokens": self.tokens(group)}, device_of(model))
            chances = finite(model(batch["tokens"]).float()).softmax(-1).cpu()
            made += [Label.among(self.labels, row) for row in chances]
            self.tell(len(group))
        return made

    def known(self, text: str) -> NDArray[np.int32]:
        """The words of an input by their places."""
        return numbered(nonempty(text, self.input).split(), self.word)

    def doubt(self, text: str) -> str | None:
        strange = [word for word in text.split() if word not in self.word]
        return f"{strange[0]!r} is a word that was never seen in training" if strange else None

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Result]:
        for group in several(read_all(inputs, self.known)):
            yield from self.answers(model, group)

    @torch.no_grad()
    def look(self, model: nn.Module, text: str) -> Example:
        places = self.known(text)
        answer = self.answers(model, [places])[0].name
        tokens = stack([FIRST + places.astype(np.int64)], first=(BEGIN,)).to(device_of(model))
        with look(model) as seen:
            model(tokens)
        words = ("<s>", *text.split())
        rows = range(len(words) if len(words) <= SHOWN else 1)
        maps = []
        for path in seen.paths:
            weights = seen.weights(path, rows=rows)[0].detach().float().cpu()
            who = fitting(words[: len(rows)], weights.shape[-2])
            maps.append(Map(path, weights, who, fitting(words, weights.shape[-1])))
        return Example(f"{shortened(text)} → {answer}", tuple(maps))

    def show(self, model: nn.Module, samples: Sequence[Line]) -> Samples:
        answers = self.answers(model, [line.places for line in samples])
        rows = tuple(
            (shortened(self.write_input(line)), line.label, said.name, f"{said.chance:.3f}")
            for line, said in zip(samples, answers, strict=True)
        )
        right = tuple(label == answer for _, label, answer, _ in rows)
        return Samples("Sequences it never saw", ("sequence", "class", "said", "chance"), rows, right)

    # ------------------------------------------------------------------ keeping

    def write_input(self, sample: Line) -> str:
        return " ".join(self.words[at] if at >= 0 else "?" for at in sample.places)

    def state(self) -> dict[str, Any]:
        return {"words": list(self.words), "labels": list(self.labels), "longest": self.longest}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        for name in ("words", "labels"):
            if not all(isinstance(word, str) for word in state[name]):
                raise TypeError(f"{name} should be words")
        return cls(state["words"], state["labels"], int(state["longest"]))


def shortened(text: str) -> str:
    """A sequence as a table has room for it."""
    return text if len(text) <= TOLD else f"{text[: TOLD - 4]} ..."
