"""Tasks: what is learned, and how it is scored; and uses, for models that were learned elsewhere."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from heedful.errors import Refusal
from heedful.models.heads_asked import NEXT, asked
from heedful.models.specs import LanguageSpec, Spec
from heedful.models.text.encoder_decoder import WriterSpec
from heedful.models.vision.image_spec import ImageSpec
from heedful.registry import Registry, lazily

if TYPE_CHECKING:
    from heedful.tasks.closed import Task
    from heedful.tasks.pairs import Pairs
    from heedful.tasks.reading import Reading
    from heedful.tasks.translation import Translation
    from heedful.tasks.use import Use
    from heedful.tasks.vectors import Vectors

__getattr__ = lazily(__name__)
TASKS: Registry[Any] = Registry(
    "task",
    "heedful.tasks",
    {
        "pairs": "heedful.tasks.pairs:Pairs",
        "translation": "heedful.tasks.translation:Translation",
        "continuation": "heedful.tasks.continuation:Continuation",
        "masking": "heedful.tasks.masking:Masking",
        "spans": "heedful.tasks.infilling:Spans",
        "infilling": "heedful.tasks.infilling:Infilling",
        "classify": "heedful.tasks.classify:Classify",
        "classify-several": "heedful.tasks.several:SeveralTasks",
        "tag": "heedful.tasks.tag:Tag",
        "answer": "heedful.tasks.answer:Answer",
        "summary": "heedful.tasks.summary:Summary",
        "conversation": "heedful.tasks.conversation:Conversation",
        "sequences": "heedful.tasks.text.sequence_classification:TASK",
        "images": "heedful.tasks.vision.image_classification:TASK",
        "rebuilding": "heedful.tasks.vision.masked_autoencoding:TASK",
        "agreeing": "heedful.tasks.vision.self_distillation:TASK",
        "coding": "heedful.tasks.vision.image_tokenizer:TASK",
        "guessing": "heedful.tasks.vision.masked_image_modelling:TASK",
        "searching": "heedful.tasks.vision.architecture_search:TASK",
        "word2vec": "heedful.tasks.skip_gram:SkipGram",
        "glove": "heedful.tasks.glove:Glove",
        "in-context": "heedful.tasks.series.in_context:TASK",
        "sets": "heedful.tasks.sets.set_classification:TASK",
        "series": "heedful.tasks.series.forecasting:TASK",
    },
)
READINGS: Registry[type[Reading]] = Registry(  # what a model is for that was learned elsewhere, by what it is asked
    "output",
    "heedful.readings",
    {
        "states": "heedful.tasks.vectors:Vectors",
        "pooled": "heedful.tasks.vectors:Vectors",
        "classes": "heedful.tasks.asking:Classification",
        "tags": "heedful.tasks.asking:Tagging",
        "answer": "heedful.tasks.asking:Answering",
        "masked": "heedful.tasks.asking:Filling",
    },
)
ALONE: Registry[type[Use]] = Registry(  # uses by the names that stand in a task.json, beside the tasks
    "use",
    "heedful.uses",
    {
        "vectors": "heedful.tasks.vectors:Vectors",
        "classification": "heedful.tasks.asking:Classification",
        "tagging": "heedful.tasks.asking:Tagging",
        "answering": "heedful.tasks.asking:Answering",
        "filling": "heedful.tasks.asking:Filling",
        "writing": "heedful.tasks.writing:Writing",
        "continuing": "heedful.tasks.continuing:Continuing",
    },
)
USES: Mapping[str, type[Use]] = ChainMap[str, Any](TASKS, ALONE)  # type: ignore[arg-type]  # read alone


def task_of(name: str) -> Any:
    """The task that a spec names."""
    return TASKS.named(name)


def use_of(model: nn.Module, folder: Path) -> Use:
    """What a model is for that does not say it: it is asked what its output answers, or it writes."""
    from heedful.tasks.continuing import Continuing
    from heedful.tasks.writing import Writing

    spec = model.spec
    word = asked(spec) if isinstance(spec, Spec) else NEXT
    if isinstance(spec, Spec) and word != NEXT:
        return suited(READINGS[word].of(folder), spec)
    if isinstance(spec, WriterSpec):
        return suited(Writing.of(folder), spec)
    if isinstance(spec, ImageSpec):
        from heedful.tasks.vision.foreign_images import seeing

        return seeing(spec)  # type: ignore[return-value]  # a record at work
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
    "ALONE",
    "READINGS",
    "TASKS",
    "USES",
    "Pairs",
    "Task",
    "Translation",
    "Use",
    "Vectors",
    "task_of",
    "use_of",
]
