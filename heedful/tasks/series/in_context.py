"""In-context learning: a decoder is shown examples of a map that it never saw, and says what it does to an input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from heedful.data.collate import Batch, Collate
from heedful.data.readers.number_series import Maps
from heedful.data.toys.linear_maps import Prompt, draw_prompts, least_squares
from heedful.errors import Refusal
from heedful.looking.page import Curve, Curves, Figures, Samples
from heedful.metrics.in_context_errors import MapErrors, MapSkill, errors_of
from heedful.objectives.regression import InContextRegression
from heedful.pipelines.in_context_prompts import InContext, MapsLearned, answers_of, steps_of
from heedful.pipelines.pipeline import unheard
from heedful.results import Number
from heedful.tasks.task import Task
from heedful.views.finding import Finding

ERRORS = "The squared error of an answer by how many examples stand before it; least squares is what could be reached."


@dataclass(frozen=True)
class PromptCollate(Collate[MapsLearned]):
    """Prompts x1 y1 x2 y2 ..., of which each y is foretold at its x; every epoch draws other maps."""

    even: ClassVar[bool] = True

    def length(self, sample: Prompt, learned: MapsLearned) -> int:
        return 2 * learned.examples

    def augmented(self, samples: Sequence[Prompt], epoch: int, learned: MapsLearned) -> Sequence[Prompt]:
        return draw_prompts(learned.seed, epoch, [one.place for one in samples], learned.examples, learned.dimensions)

    def batch(self, samples: Sequence[Prompt], learned: MapsLearned) -> Batch:
        answers = np.stack([one.answers for one in samples])
        return {
            "series": torch.from_numpy(np.stack([steps_of(one) for one in samples])),
            "answer": torch.from_numpy(answers),
        }

    def as_input(self, sample: Prompt, learned: MapsLearned) -> str:
        parts = [[*one, answer] for one, answer in zip(sample.inputs, sample.answers, strict=True)]
        parts[-1] = parts[-1][:-1]
        return "; ".join(",".join(f"{number:.6g}" for number in part) for part in parts)


def again(reader: Maps, learned: MapsLearned) -> tuple[Maps, MapsLearned]:
    """Other maps are as those that were learned from."""
    if (reader.dimensions, reader.longest) != (learned.dimensions, learned.examples):
        known = f"data.dimensions={learned.dimensions} and data.longest={learned.examples}"
        raise Refusal(f"the model learned with {known}; leave others out")
    return reader, learned


def table(samples: Sequence[Prompt], results: Sequence[Number], learned: MapsLearned) -> Samples:
    """The last input of prompts, its answer, and what least squares and the model say."""
    inputs, answers = (np.stack([getattr(one, name) for one in samples]) for name in ("inputs", "answers"))
    cells = zip(samples, answers[:, -1], least_squares(inputs, answers)[:, -1], results, strict=True)
    rows = tuple(
        (",".join(f"{number:.2f}" for number in one.inputs[-1]), f"{wanted:.3f}", f"{fit:.3f}", f"{ours.value:.3f}")
        for one, wanted, fit, ours in cells
    )
    header = ("input", "its answer", "least squares", "this decoder")
    return Samples(f"After {learned.examples - 1} examples of maps it never saw", header, rows)


def by_examples(model: nn.Module, samples: Sequence[Prompt], results: Any, learned: MapsLearned) -> Finding:
    """The worth of examples: the error by how many of them stand before an input."""
    found = errors_of(samples, answers_of(model, samples, learned, unheard))
    curves = tuple(
        Curve(name, tuple((float(at), float(error)) for at, error in enumerate(errors)), "error", along="examples")
        for name, errors in found.items()
    )
    at = min(learned.dimensions, learned.examples - 1)  # so many examples tell a map of so many dimensions
    cards = ((name, f"{one[at]:.3f}", f"squared error; examples before it: {at}") for name, one in found.items())
    shown = Curves("Error by examples", curves, ERRORS)
    return Finding(Figures("What examples are worth", tuple(cards)), "", "mean", (shown,))


TASK = Task(
    name="in-context",
    readers={"maps": Maps, "files": Maps},
    fit=MapsLearned.fit,
    learned=MapsLearned,
    again=again,
    collate=PromptCollate(),
    objective=InContextRegression(),
    metrics=(MapSkill(source=answers_of), MapErrors(source=answers_of)),
    watch="skill",
    pipeline=InContext("examples as numbers with commas, the answer last, a semicolon after each, then an input"),
    table=table,
    views=(by_examples,),
    families=("forecaster",),
)
