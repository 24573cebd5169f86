"""Tasks: what is learned, and how it is scored; and uses, for models that were learned elsewhere."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from heedful.errors import Refusal
from heedful.models import Spec
from heedful.models.bert import EncoderSpec
from heedful.models.encoder_decoder import WriterSpec
from heedful.models.images import ImageSpec
from heedful.models.spec import LanguageSpec
from heedful.models.words import parse
from heedful.tasks.agreeing import Agreeing
from heedful.tasks.asking import Answering, Classification, Filling, Tagging
from heedful.tasks.coding import Coding
from heedful.tasks.continuing import Continuing
from heedful.tasks.elsewhere import seeing
from heedful.tasks.guessing import Guessing
from heedful.tasks.images import Images
from heedful.tasks.pairs import Pairs
from heedful.tasks.reading import Reading
from heedful.tasks.rebuilding import Rebuilding
from heedful.tasks.searching import Searching
from heedful.tasks.series import Series
from heedful.tasks.sets import Sets
from heedful.tasks.task import Task
from heedful.tasks.translation import Translation
from heedful.tasks.use import Use
from heedful.tasks.vectors import Vectors
from heedful.tasks.writing import Writing

SAID: tuple[type[Task], ...] = (Pairs, Translation, Sets, Series)
SEEING: tuple[type[Task], ...] = (Images, Rebuilding, Agreeing, Coding, Guessing, Searching)
TASKS: dict[str, type[Task]] = {task.name: task for task in (*SAID, *SEEING)}
READINGS: tuple[type[Reading], ...] = (Vectors, Classification, Tagging, Answering, Filling)
USES: dict[str, type[Use]] = {
    **TASKS,
    **{use.name: use for use in READINGS},
    Writing.name: Writing,
    Continuing.name: Continuing,
}


def use_of(model: nn.Module, folder: Path) -> Use:
    """What a model is for that does not say it: encoders are asked what their output answers, others write."""
    spec = model.spec
    if isinstance(spec, WriterSpec):
        return suited(Writing.of(folder), spec)
    if isinstance(spec, EncoderSpec):
        word = parse(spec.output)[0]
        return suited(next(use for use in READINGS if word in use.outputs).of(folder), spec)
    if isinstance(spec, ImageSpec):
        return seeing(spec, folder)
    if not isinstance(spec, LanguageSpec):
        raise Refusal(f"{folder} does not say what its model is for: it has no task.json; copy or train it again")
    return Continuing.read(folder, {})


def suited(use: Use, spec: Spec) -> Use:
    """A use of a model that it suits."""
    use.suits(spec)
    return use


__all__ = [
    "READINGS",
    "TASKS",
    "USES",
    "Agreeing",
    "Coding",
    "Guessing",
    "Images",
    "Pairs",
    "Rebuilding",
    "Searching",
    "Series",
    "Sets",
    "Task",
    "Translation",
    "Use",
    "Vectors",
    "use_of",
]
