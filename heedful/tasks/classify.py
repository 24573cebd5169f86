"""Of which class a sentence, or a pair of them, is; by an encoder that is fitted to samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.data_spec import DataSpec
from heedful.data.formats.labelled_text import Sentence, labelled
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking import calibration, confusion
from heedful.looking.page import Samples, Section
from heedful.models import Spec
from heedful.tasks.asking import Classification
from heedful.tasks.fitted import Asked, Fitted, last_layer
from heedful.tasks.task import Finding
from heedful.tokenizers import Joined


class Classify(Classification, Fitted):
    """Says of a sentence or pair of which class it is; scored by the share that is right, and by F1 over classes."""

    name: ClassVar[str] = "classify"
    watch: ClassVar[str] = "accuracy"
    keys: ClassVar[frozenset[str]] = Fitted.keys | {"form"}

    @classmethod
    def opened(cls, data: DataSpec, seed: int) -> Splits[Sentence]:
        return labelled(data, seed)

    def learn(self, samples: Sequence[Sentence]) -> None:
        self.labels = sorted({sample.label for sample in samples})
        if len(self.labels) < 2:
            raise Refusal(f"all samples to learn from are of class {self.labels[0]!r}; add those of another")
        self.many = {self.task_of(sample): len(sample.texts) for sample in reversed(samples)}

    def task_of(self, sample: Sentence) -> str:
        """What is asked of a sample, where that is told beside it."""
        return ""

    def judge(self, sample: Sentence, joined: Joined) -> int:
        if fault := self.unlike(sample.texts, self.task_of(sample)):
            raise Refusal(f"{sample.place}: {fault}; give every sample as many texts")
        if sample.label not in self.labels:
            known = ", ".join((*self.labels[:9], "...") if len(self.labels) > 10 else self.labels)
            raise Refusal(
                f"{sample.place}: class {sample.label!r} is none that is trained on ({known}); train on it or drop it"
            )
        return list(self.labels).index(sample.label)

    def suits(self, spec: Spec) -> None:
        super().suits(spec)
        if self.several:
            raise Refusal("model.multi_label=True: a model learns one class for each text here; leave it out")

    def numbers(self) -> dict[str, Any]:
        return {"classes": len(self.labels), "labels": list(self.labels)}

    def noted(self, splits: Splits[Asked]) -> str:
        return confusion.balance((self.labels[sample.answer] for sample in splits.train), "f1")

    def answers_of(self, samples: Sequence[Asked]) -> Tensor:
        return torch.tensor([sample.answer + 1 for sample in samples])

    # ------------------------------------------------------------------ answering

    def chances(self, model: nn.Module, samples: Sequence[Asked]) -> NDArray[np.float64]:
        """The chance of each class, for each sample: N C."""
        given = self.given(model, [sample.joined for sample in samples])
        return torch.stack(given).double().softmax(-1).cpu().numpy()

    def counted(self, chances: NDArray[np.float64], samples: Sequence[Asked]) -> NDArray[np.int64]:
        """How often each class (a row) was taken for each (a column)."""
        counts = np.zeros((len(self.labels), len(self.labels)), dtype=np.int64)
        np.add.at(counts, ([sample.answer for sample in samples], chances.argmax(-1)), 1)
        return counts

    def score(self, model: nn.Module, samples: Sequence[Asked]) -> dict[str, float]:
        return self.scored(self.chances(model, samples), samples)

    def scored(self, chances: NDArray[np.float64], samples: Sequence[Asked]) -> dict[str, float]:
        """The scores of what was said of samples, by the chances of each class (N C)."""
        counts = self.counted(chances, samples)
        return {
            "accuracy": float(counts.trace() / max(1, counts.sum())),
            "f1": f1(counts),
            "calibration_error": calibration.error(self.sure(chances, samples)),
        }

    def sure(self, chances: NDArray[np.float64], samples: Sequence[Asked]) -> list[calibration.Bin]:
        """How sure the model was, and how often right."""
        right = chances.argmax(-1) == np.array([sample.answer for sample in samples])
        return calibration.bins(chances.max(-1).tolist(), right.tolist())

    def show(self, model: nn.Module, samples: Sequence[Asked]) -> Samples:
        rows = tuple(
            (" | ".join(one.read.texts), one.read.label, self.labels[int(row.argmax())], f"{row.max():.2f}")
            for one, row in zip(samples, self.chances(model, samples), strict=True)
        )
        right = tuple(label == said for _, label, said, _ in rows)
        return Samples("Sentences it never saw", ("text", "class", "said", "chance"), rows, right)

    def finding(self, model: nn.Module, samples: Sequence[Asked]) -> Finding | None:
        chances = self.chances(model, samples)
        counts, sure = self.counted(chances, samples), self.sure(chances, samples)
        figures, table, diagram = confusion.told(self.labels, counts, sure)
        more = (*self.alone(model, samples), *self.sections(chances, samples))
        return Finding(figures, last_layer(model), "mean", (*more, table, diagram))

    def sections(self, chances: NDArray[np.float64], samples: Sequence[Asked]) -> tuple[Section, ...]:
        """What else a report tells of what was said of samples."""
        return ()

    # ------------------------------------------------------------------ keeping

    def state(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "texts": dict(self.many)}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        task = cls.labelled(folder, state)
        task.many = state.get("texts", {})  # which older folders do not tell
        if not all(many in (1, 2) for many in task.many.values()):
            raise ValueError("an input should have one text or two")
        return task


def f1(counts: NDArray[np.int64]) -> float:
    """The mean over classes of F1, the harmonic mean of precision and recall, of a table of rows taken for columns."""
    both = counts.sum(0) + counts.sum(1)
    return float((2 * counts.diagonal() / np.maximum(1, both))[both > 0].mean())
