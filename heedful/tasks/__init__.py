"""Tasks: what is learned, and how it is scored; and uses, for models that were learned elsewhere."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from heedful.errors import Refusal
from heedful.models.heads_asked import NEXT, word_asked
from heedful.models.specs import Spec
from heedful.registry import Registry, lazily

if TYPE_CHECKING:
    from heedful.pipelines.use import Usage
    from heedful.tasks.task import Task
    from heedful.tasks.work import Work

__getattr__ = lazily(__name__)
FORMER = {  # names in folders that were written before the tasks had the field's names, and what they are called now
    "agreeing": "self-distillation",
    "coding": "image-tokenizer",
    "continuation": "language-modelling",
    "continuing": "text-generation",
    "conversation": "chat",
    "filling": "fill-mask",
    "guessing": "masked-image-modelling",
    "images": "image-classification",
    "masking": "masked-lm",
    "rebuilding": "masked-autoencoding",
    "searching": "architecture-search",
    "spans": "span-corruption",
    "summary": "summarisation",
    "vectors": "sentence-vectors",
    "writing": "seq2seq",
}
TASKS: Registry[Task] = Registry(
    "task",
    "heedful.tasks",
    {
        "pairs": "heedful.tasks.text.sequence_pairs:TASK",
        "translation": "heedful.tasks.text.translation:TASK",
        "language-modelling": "heedful.tasks.text.language_modelling:TASK",
        "masked-lm": "heedful.tasks.text.masked_lm:TASK",
        "span-corruption": "heedful.tasks.text.denoising:SPANS",
        "infilling": "heedful.tasks.text.denoising:INFILLING",
        "classify": "heedful.tasks.text.text_classification:TASK",
        "classify-several": "heedful.tasks.text.multitask:TASK",
        "tag": "heedful.tasks.text.tagging:TASK",
        "answer": "heedful.tasks.text.question_answering:TASK",
        "summarisation": "heedful.tasks.text.summarisation:TASK",
        "chat": "heedful.tasks.text.chat:TASK",
        "sequences": "heedful.tasks.text.sequence_classification:TASK",
        "names": "heedful.tasks.text.name_classification:TASK",
        "image-classification": "heedful.tasks.vision.image_classification:TASK",
        "masked-autoencoding": "heedful.tasks.vision.masked_autoencoding:TASK",
        "self-distillation": "heedful.tasks.vision.self_distillation:TASK",
        "image-tokenizer": "heedful.tasks.vision.image_tokenizer:TASK",
        "masked-image-modelling": "heedful.tasks.vision.masked_image_modelling:TASK",
        "architecture-search": "heedful.tasks.vision.architecture_search:TASK",
        "word2vec": "heedful.tasks.text.word2vec:TASK",
        "glove": "heedful.tasks.text.glove:TASK",
        "in-context": "heedful.tasks.series.in_context:TASK",
        "sets": "heedful.tasks.sets.set_classification:TASK",
        "series": "heedful.tasks.series.forecasting:TASK",
    },
    FORMER,
)
READINGS: Registry[Usage] = Registry(  # what a model is for that was learned elsewhere, by what it is asked
    "output",
    "heedful.readings",
    {
        "states": "heedful.pipelines.sentence_vectors:VECTORS",
        "pooled": "heedful.pipelines.sentence_vectors:VECTORS",
        "classes": "heedful.pipelines.text_classes:CLASSIFICATION",
        "tags": "heedful.pipelines.token_classification:TAGGING",
        "answer": "heedful.pipelines.extractive_answers:ANSWERING",
        "masked": "heedful.pipelines.fill_mask:FILLING",
    },
)
UNASKED: Registry[Any] = Registry(  # the same of models that are asked nothing else, by the `use` of their spec
    "use",
    "heedful.unasked",
    {
        "seq2seq": "heedful.pipelines.writing:WRITING",
        "text-generation": "heedful.pipelines.text_generation:CONTINUING",
        "images": "heedful.tasks.vision.pretrained_images:SEEING",
    },
)
ALONE: Registry[Any] = Registry(  # uses by the names that stand in a task.json, beside the tasks
    "use",
    "heedful.uses",
    {
        "sentence-vectors": "heedful.pipelines.sentence_vectors:VECTORS",
        "classification": "heedful.pipelines.text_classes:CLASSIFICATION",
        "tagging": "heedful.pipelines.token_classification:TAGGING",
        "answering": "heedful.pipelines.extractive_answers:ANSWERING",
        "fill-mask": "heedful.pipelines.fill_mask:FILLING",
        "seq2seq": "heedful.pipelines.writing:WRITING",
        "text-generation": "heedful.pipelines.text_generation:CONTINUING",
    },
)
USES: Mapping[str, Any] = ChainMap[str, Any](TASKS, ALONE)  # type: ignore[arg-type]  # read alone


def task_of(name: str) -> Task:
    """The task that a spec names."""
    return TASKS.named(name)


def use_of(model: nn.Module, folder: Path) -> Any:
    """What a model is for that does not say it: it is asked what its output answers, or it writes, or sees."""
    spec = model.spec
    if not isinstance(spec, Spec) or (word_asked(spec) == NEXT and not spec.use):
        raise Refusal(f"{folder} does not say what its model is for: it has no task.json; copy or train it again")
    word = word_asked(spec)
    use = UNASKED[spec.use] if word == NEXT else READINGS[word]
    return use_that_suits(use.of(folder, spec), spec)


def use_that_suits(use: Any, spec: Spec) -> Any:
    """A use of a model that it suits."""
    if use.writes and word_asked(spec) != NEXT:
        raise Refusal(
            f"{use.name} asks for model.output={NEXT}, and this model's is {word_asked(spec)}; use another task"
        )
    return use.suited(spec)


__all__ = [
    "ALONE",
    "READINGS",
    "TASKS",
    "USES",
    "Task",
    "Work",
    "task_of",
    "use_of",
]
