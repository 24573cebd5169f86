"""Tasks: what is learned, and how it is scored; and uses, for models that were learned elsewhere."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from heedful.errors import Refusal
from heedful.models.bert import EncoderSpec
from heedful.models.words import parse
from heedful.tasks.asking import Answering, Classification, Filling, Tagging
from heedful.tasks.pairs import Pairs
from heedful.tasks.reading import Reading
from heedful.tasks.series import Series
from heedful.tasks.sets import Sets
from heedful.tasks.task import Task
from heedful.tasks.translation import Translation
from heedful.tasks.use import Use
from heedful.tasks.vectors import Vectors
from heedful.tasks.writing import Writing

TASKS: dict[str, type[Task]] = {task.name: task for task in (Pairs, Translation, Sets, Series)}
READINGS: tuple[type[Reading], ...] = (Vectors, Classification, Tagging, Answering, Filling)
USES: dict[str, type[Use]] = {**TASKS, **{use.name: use for use in READINGS}, Writing.name: Writing}


def use_of(model: nn.Module, folder: Path) -> Use:
    """What a model is for that does not say it: one that writes writes, an encoder is asked what its output answers."""
    if hasattr(model, "special"):
        return Writing()
    if not isinstance(model.spec, EncoderSpec):
        raise Refusal(f"{folder} does not say what its model is for: it has no task.json; copy or train it again")
    word = parse(model.spec.output)[0]
    made = next(use for use in READINGS if word in use.outputs).of(folder)
    made.suits(model.spec)
    return made


__all__ = [
    "READINGS",
    "TASKS",
    "USES",
    "Pairs",
    "Series",
    "Sets",
    "Task",
    "Translation",
    "Use",
    "Vectors",
    "Writing",
    "use_of",
]
