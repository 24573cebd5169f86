"""Confusion and calibration: the hardest classes, what is taken for what, and how sure a model is; task by task too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from heedful.looking import calibration, confusion
from heedful.looking.page import Figures
from heedful.results import Label
from heedful.views.finding import Finding, last_attention


def class_by_class(model: nn.Module, samples: Sequence[Any], results: Sequence[Label], learned: Any) -> Finding:
    """The classes that a model confuses: each sample has a `label`, and all `labels` were learned."""
    counts = confusion.confusion_matrix(learned.labels, [one.label for one in samples], [said.name for said in results])
    right = [one.label == said.name for one, said in zip(samples, results, strict=True)]
    sure = calibration.bins([said.chance for said in results], right)
    figures, table, diagram = confusion.sections(learned.labels, counts, sure)
    return Finding(figures, last_attention(model), "mean", (table, diagram))


def task_by_task(model: nn.Module, samples: Sequence[Any], results: Sequence[Label], learned: Any) -> Finding:
    """How many texts of each task are right."""
    made: dict[str, list[bool]] = {task: [] for task in learned.answers}
    for one, said in zip(samples, results, strict=True):
        made[one.read.task].append(one.label == said.name)
    cards = tuple(
        (task, f"{100 * sum(right) / len(right):.1f} %", f"of {len(right):,} right")
        for task, right in made.items()
        if right
    )
    return Finding(Figures("Task by task", cards), last_attention(model), "mean")
