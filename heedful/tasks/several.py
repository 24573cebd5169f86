"""Several tasks at once: what is asked of a text is told beside it, and the class answers that (CAMTL)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.data.formats.labelled_text import Sentence
from heedful.errors import Refusal
from heedful.looking.page import Figures, Section
from heedful.results import Result
from heedful.tasks.classify import Classify
from heedful.tasks.fitted import Asked
from heedful.tokenizers import Joined

NEVER = -1e4  # the score of a class that answers another task


class SeveralTasks(Classify):
    """Says of a text what its task asks: each task has classes of its own, and all share one encoder.

    A model with `model.bias=camtl` looks at a text as its task would have it (Pilault et al., 2021).
    """

    name: ClassVar[str] = "classify-several"
    input: ClassVar[str] = "a task, a tab and a sentence, or two with a tab between them"
    also: ClassVar[tuple[str, ...]] = ("roberta", "camembert", "distilbert", "albert")
    terms: ClassVar[frozenset[str]] = frozenset({"consistency"})  # smoothing would give to classes of other tasks

    answers: dict[str, list[str]]  # the classes of each task, by its name

    def learn(self, samples: Sequence[Sentence]) -> None:
        for one in samples:
            if not one.task:
                raise Refusal(f"{one.place}: no task is told; name a column `task`, and say in it what is asked")
        tasks = sorted({one.task for one in samples})
        self.answers = {task: sorted({one.label for one in samples if one.task == task}) for task in tasks}
        super().learn(samples)

    def task_of(self, sample: Sentence) -> str:
        return sample.task

    def judge(self, sample: Sentence, joined: Joined) -> int:
        if sample.label not in self.answers[self.learned(sample.task, f"{sample.place}: ")]:
            said = f"class {sample.label!r} answers no task {sample.task!r} that is trained on"
            raise Refusal(f"{sample.place}: {said}; train on it or drop it")
        return super().judge(sample, joined)

    def learned(self, task: str, place: str = "") -> str:
        """The task itself, where it is one of those that were learned."""
        if task not in self.answers:
            raise Refusal(f"{place}task {task!r} is none that is trained on; known: {', '.join(self.answers)}")
        return task

    def numbers(self) -> dict[str, Any]:
        return super().numbers() | {"tasks": len(self.answers)}

    # ------------------------------------------------------------------ reading

    def tokenised(self, samples: Sequence[Any], longest: int | None = None) -> list[Asked]:
        made = super().tokenised(samples, longest)
        return [replace(one, joined=self.of_task(one.joined, one.read.task)) for one in made]

    def of_task(self, joined: Joined, task: str) -> Joined:
        """The tokens of a text, and the number of its task."""
        return replace(joined, task=list(self.answers).index(task))

    def known(self, text: str) -> tuple[str, ...]:
        if (tabs := text.count("\t")) not in (1, 2):
            raise Refusal(f"the input has {tabs or 'no'} tab{'s' * (tabs != 0)}; give {self.input}")
        task, _, rest = text.partition("\t")
        task = self.learned(task.strip())
        return (task, *self.as_learned(super().known(rest), task))

    def joined(self, texts: Sequence[tuple[str, ...]], longest: int | None = None) -> list[Joined]:
        made = super().joined([rest for _, *rest in texts], longest)  # type: ignore[misc]
        return [self.of_task(one, task) for one, (task, *_) in zip(made, texts, strict=True)]

    def write_input(self, sample: Asked) -> str:
        return f"{sample.read.task}\t{super().write_input(sample)}"

    # ------------------------------------------------------------------ answering

    def among(self, given: Tensor, tasks: Tensor) -> Tensor:
        """Scores (... C) in which classes count for nothing that answer other tasks than these (...)."""
        rows = [[label not in answers for label in self.labels] for answers in self.answers.values()]
        return given.masked_fill(torch.tensor(rows, device=given.device)[tasks.to(given.device)], NEVER)

    def scores(self, given: Tensor, batch: Batch) -> Tensor:
        return self.among(given, batch["tasks"])

    def chances(self, model: nn.Module, samples: Sequence[Asked]) -> NDArray[np.float64]:
        given = torch.stack(self.given(model, [one.joined for one in samples])).double()
        tasks = torch.tensor([one.joined.task for one in samples])
        return self.among(given, tasks).softmax(-1).cpu().numpy()

    def answer(self, joined: Joined, given: Tensor) -> Result:
        return super().answer(joined, self.among(given, torch.tensor(joined.task)))

    def scored(self, chances: NDArray[np.float64], samples: Sequence[Asked]) -> dict[str, float]:
        shares = {f"accuracy_{task}": right.mean() for task, right in self.by_task(chances, samples)}
        return super().scored(chances, samples) | {name: float(share) for name, share in shares.items()}

    def by_task(
        self, chances: NDArray[np.float64], samples: Sequence[Asked]
    ) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Each task of which there are samples, and which of those are right."""
        right = chances.argmax(-1) == np.array([one.answer for one in samples])
        of = np.array([one.joined.task for one in samples])
        yield from ((task, right[of == at]) for at, task in enumerate(self.answers) if (of == at).any())

    def sections(self, chances: NDArray[np.float64], samples: Sequence[Asked]) -> tuple[Section, ...]:
        found = self.by_task(chances, samples)
        cards = tuple((task, f"{100 * right.mean():.1f} %", f"of {len(right):,} right") for task, right in found)
        return (Figures("Task by task", cards),)

    # ------------------------------------------------------------------ keeping

    def state(self) -> dict[str, Any]:
        return super().state() | {"answers": self.answers}

    @classmethod
    def read(cls, folder: Path, state: dict[str, Any]) -> Self:
        task, answers = super().read(folder, state), state["answers"]
        if not all(isinstance(row, list) and set(row) <= set(task.labels) for row in answers.values()):
            raise TypeError("the classes of tasks should be among all")
        task.answers = answers
        return task
