"""Tasks: what is learned, and how it is scored; and uses, for models that were learned elsewhere."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from heedful.errors import Refusal, unknown
from heedful.models import Spec
from heedful.models.answers import NEXT, asked
from heedful.models.encoder_decoder import WriterSpec
from heedful.models.images import ImageSpec
from heedful.models.spec import LanguageSpec
from heedful.tasks.agreeing import Agreeing
from heedful.tasks.answer import Answer
from heedful.tasks.asking import Answering, Classification, Filling, Tagging
from heedful.tasks.classify import Classify
from heedful.tasks.coding import Coding
from heedful.tasks.continuation import Continuation
from heedful.tasks.continuing import Continuing
from heedful.tasks.conversation import Conversation
from heedful.tasks.elsewhere import seeing
from heedful.tasks.glove import Glove
from heedful.tasks.guessing import Guessing
from heedful.tasks.images import Images
from heedful.tasks.in_context import InContext
from heedful.tasks.infilling import Infilling, Spans
from heedful.tasks.masking import Masking
from heedful.tasks.pairs import Pairs
from heedful.tasks.reading import Reading
from heedful.tasks.rebuilding import Rebuilding
from heedful.tasks.searching import Searching
from heedful.tasks.sequences import Sequences
from heedful.tasks.series import Series
from heedful.tasks.sets import Sets
from heedful.tasks.several import SeveralTasks
from heedful.tasks.skip_gram import SkipGram
from heedful.tasks.summary import Summary
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task
from heedful.tasks.translation import Translation
from heedful.tasks.use import Use
from heedful.tasks.vectors import Vectors
from heedful.tasks.writing import Writing

OF_TEXT: tuple[type[Task], ...] = (Pairs, Translation, Continuation, Masking, Spans, Infilling)
FITTED: tuple[type[Task], ...] = (Classify, SeveralTasks, Tag, Answer, Summary, Conversation, Sequences)
OF_IMAGES: tuple[type[Task], ...] = (Images, Rebuilding, Agreeing, Coding, Guessing, Searching)
OTHERS: tuple[type[Task], ...] = (SkipGram, Glove, InContext, Sets, Series)
TASKS: dict[str, type[Task]] = {task.name: task for task in (*OF_TEXT, *FITTED, *OF_IMAGES, *OTHERS)}
READINGS: tuple[type[Reading], ...] = (Vectors, Classification, Tagging, Answering, Filling)
USES: dict[str, type[Use]] = {
    **TASKS,
    **{use.name: use for use in READINGS},
    Writing.name: Writing,
    Continuing.name: Continuing,
}


def task_of(name: str) -> type[Task]:
    """The task that a spec names."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def use_of(model: nn.Module, folder: Path) -> Use:
    """What a model is for that does not say it: it is asked what its output answers, or it writes."""
    spec = model.spec
    word = asked(spec) if isinstance(spec, Spec) else NEXT
    if isinstance(spec, Spec) and word != NEXT:
        return suited(next(use for use in READINGS if word in use.outputs).of(folder), spec)
    if isinstance(spec, WriterSpec):
        return suited(Writing.of(folder), spec)
    if isinstance(spec, ImageSpec):
        return seeing(spec)
    if not isinstance(spec, LanguageSpec):
        raise Refusal(f"{folder} does not say what its model is for: it has no task.json; copy or train it again")
    return Continuing.read(folder, {})


def suited(use: Use, spec: Spec) -> Use:
    """A use of a model that it suits."""
    if use.writes and asked(spec) != NEXT:
        raise Refusal(f"{use.name} asks for model.output={NEXT}, and this model's is {asked(spec)}; use another task")
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
    "Sequences",
    "Series",
    "Sets",
    "Task",
    "Translation",
    "Use",
    "Vectors",
    "task_of",
    "use_of",
]
