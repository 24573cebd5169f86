"""Before the first step: data are opened, the model is built and tried, what cannot learn is refused or warned of."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from heedful import models
from heedful.data.collate import to
from heedful.data.near_duplicates import Overlap, by_side
from heedful.data.splits import Splits
from heedful.decoding.search_spec import Decoding
from heedful.errors import Failure, Refusal, short_of_memory
from heedful.metrics.metric import evaluate
from heedful.models import Spec, part_tables, part_words
from heedful.models.numerics import device_of
from heedful.models.specs import Attends
from heedful.objectives.head_terms import HeadTerms, looks
from heedful.pipelines.pipeline import unheard
from heedful.tasks import task_of
from heedful.tasks.task import Task
from heedful.tasks.work import Work
from heedful.terminal import progress
from heedful.training.model_spec_for_task import suit_spec
from heedful.training.out_of_memory import check_batch, name_what_lacked
from heedful.training.precision import working_dtype
from heedful.training.spec.run_spec import RunSpec
from heedful.training.trained_run import load_trained
from heedful.training.training_step import seed_step

if TYPE_CHECKING:
    from heedful.training.adapt.init_from import Begun
    from heedful.training.callbacks import Callback


@dataclass(frozen=True)
class Ready:
    """A run that was checked and can start."""

    run: RunSpec
    task: Work
    splits: Splits[Any]
    model: nn.Module
    start: str = ""  # what the model began with, where that is not chance
    overlaps: tuple[Overlap, ...] = ()  # what of the held-out samples is learned from too


@dataclass(frozen=True)
class Given:
    """What a run is given in Python and no file could say: a task, a model of one's own, and who hears of the run."""

    task: Task | None = None
    model: nn.Module | None = None
    callbacks: tuple[Callback, ...] = ()


NOTHING = Given()


def prepare(run: RunSpec, place: torch.device, begun_in: Path | None = None, given: Given = NOTHING) -> Ready:
    """Opens the data, builds the model and tries it; what cannot work is refused, what is unlikely to is warned of.

    A run that goes on was begun in a folder, on the same data.
    """
    if given.model is not None:
        return prepare_own(run, place, given, given.model)
    task, splits, spec = choose(run, place, begun_in, given)
    task = teach(run, task, spec, place)
    with progress("samples are measured"):
        splits = fitting(splits, task, spec, run.data.long_samples)
        longest = max(chain(splits.train, splits.valid, splits.test), key=task.length)
        check_batch(run, spec, [task.length(sample) for sample in splits.train])
    seed_step(run.seed, -1, 0)
    run = run.model_copy(update={"model": spec.model_dump(exclude_none=True)})
    with name_what_lacked("a first try of the model", run):
        model = models.assemble(spec)
        begun = begun_with(model, run) if run.start else None
        task.on_train_begin(model)
        if begun is not None:
            from heedful.training.adapt.init_from import check_learns

            check_learns(run, model, begun)
        if run.training.freeze or run.training.lora is not None:
            from heedful.training.adapt.freeze_and_lora import adapt

            adapt(model, run.training)
        model.to(place, torch.float64 if run.training.dtype == "float64" else torch.float32)
        rehearse(task, model, [longest, splits.train[0]])
        check_metrics(run.metrics, task, model, splits.test[:1])
    advise(task, spec)
    return Ready(run, task, splits, model, begun.said if begun else "", task.overlaps(splits))


def prepare_own(run: RunSpec, place: torch.device, given: Given, model: nn.Module) -> Ready:
    """The same for a model of one's own, whatever it is: all that is asked of it is that the task can be learned."""
    kind = task_of(run.task) if given.task is None else given.task
    task, splits = open_task(run, kind, place)
    task.on_train_begin(model)
    model.to(place, torch.float64 if run.training.dtype == "float64" else torch.float32)
    rehearse(task, model, splits.train[:1])
    check_metrics(run.metrics, task, model, splits.test[:1])
    return Ready(run, task, splits, model, "", task.overlaps(splits))


def begun_with(model: nn.Module, run: RunSpec) -> Begun:
    """What a fresh model begins with: a folder for the whole of it, or folders for its parts."""
    from heedful.training.adapt.init_from import begin, begin_parts

    return begin_parts(model, run.part_starts) if run.part_starts else begin(model, Path(run.whole_start))


def teach(run: RunSpec, task: Work, spec: Spec, place: torch.device) -> Work:
    """The task with the teacher of its run, where it has one."""
    if not run.teacher:
        return task
    teacher, learned = load_trained(Path(run.teacher))
    return task.taught_by(teacher.to(place).requires_grad_(False).eval(), learned, spec)


def choose(
    run: RunSpec, place: torch.device, begun_in: Path | None = None, given: Given = NOTHING
) -> tuple[Work, Splits[Any], Spec]:
    """The task, its data and the spec of the model, where they can work together; nothing is built yet."""
    kind = task_of(run.task) if given.task is None else given.task
    task, splits = open_task(run, kind, place)
    task, spec = suit_spec(run, task, begun_in)
    models.check_size(spec)
    return task, splits, spec


def open_task(run: RunSpec, kind: Any, place: torch.device) -> tuple[Work, Splits[Any]]:
    """The task of a run and its data, where they can work together."""
    task, splits = kind.open(run.data, run.seed)
    for name, split in (("train", splits.train), ("valid", splits.valid), ("test", splits.test)):
        if not len(split):
            raise Refusal(f"data.{name} is not given; give all of data.train, data.valid and data.test, or one file")
    check_terms(run, task)
    working_dtype(run.training, place)
    if run.whole_start:
        from heedful.training.adapt.init_from import check_tokens

        check_tokens(run, task)
    task = task.configured(dict(run.objective), splits).measured_by(run.metrics)
    task.check_log(HeadTerms.of(run.objective).names)
    return task.searched_by(run.decoding), splits


def check_terms(run: RunSpec, task: Work) -> None:
    """Refuses what goes with no objective of the task's, or with none at all."""
    if (looking := looks(run.objective)) and run.training.compile:
        raise Refusal(
            f"objective.{looking} looks into the model, and a compiled one cannot be; leave training.compile out"
        )
    if run.training.graphs and not (task.filled or task.even):
        raise Refusal(
            f"training.graphs fills batches up with zeros, which task {task.name!r} would learn; leave it out"
        )
    if run.decoding != Decoding() and not task.writes:
        raise Refusal(f"decoding is for models that write, and this one's task is {task.name}; leave it out")


def fitting(splits: Splits[Any], task: Work, spec: Spec, too_long: str) -> Splits[Any]:
    """The samples that the model can take; what is too long is named, or left out where that was asked for."""
    if too_long == "cut":
        parts = (splits.train, splits.valid, splits.test)
        return Splits(*([task.shortened(sample, spec.longest) for sample in part] for part in parts))
    beyond = np.fromiter((task.length(sample) > spec.longest for sample in splits.train), np.int64)
    left_out = int(beyond.sum())
    if 0 < left_out < len(splits.train) and too_long == "drop":
        doubt(
            f"{left_out:,} of {len(splits.train):,} samples to learn from are longer than model.length={spec.longest}"
        )
        splits = replace(splits, train=by_side(splits.train, beyond, 1)[0])
    longest = max(chain(splits.train, splits.valid, splits.test), key=task.length)
    length = task.length(longest)
    if length > spec.longest:
        learned = too_long == "refuse" and any(task.length(sample) == length for sample in splits.train)
        cuts = task.cuts
        ways = ["leave such samples out with data.too_long=drop"] * learned + ["cut them with data.too_long=cut"] * cuts
        cure = "".join(f", or {way}" for way in ways)
        raise Refusal(
            f"{task.source_of(longest)}: {length} long and the model takes {spec.longest}; "
            f"set model.length={length} or shorten it{cure}"
        )
    return splits


def rehearse(task: Work, model: nn.Module, samples: Sequence[Any]) -> None:
    """Lets a fresh model read and answer a few samples, so that parts that do not fit together are refused in time."""
    model.eval()
    try:
        with torch.no_grad():
            loss, _ = task.loss(model, to(task.batch(samples), device_of(model)))
        if not loss.isfinite():
            raise Refusal("the loss of a fresh model is not finite; mend the arguments of its words, as in word(key=1)")
        task.show(model, samples[:1])
    except (Refusal, Failure):
        raise
    except (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        if short_of_memory(error):
            raise
        line = models.first_line(error)
        cured = isinstance(error, ValueError) and "; " in line  # who refuses says what to do
        cure = "" if cured else "; mend its words"
        raise Refusal(f"the model's parts do not fit together: {line}{cure}") from None
    model.train()


def check_metrics(names: Sequence[str], task: Work, model: nn.Module, samples: Sequence[Any]) -> None:
    """Refuses metrics that are asked for beside a task's own and cannot score its answers."""
    own = len(task.task.metrics)
    for name, metric in zip(names, task.metrics[own:], strict=True):
        try:
            evaluate([metric], task.pipeline.results, model, samples, task.learned, unheard)
        except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError) as error:
            why = models.first_line(error)
            raise Refusal(
                f"metrics={name} cannot score the answers of task {task.name!r} ({why}); leave it out"
            ) from None


def advise(task: Work, spec: Spec) -> None:
    """Warns of what can run but is unlikely to learn."""
    if task.ordered and not spec.knows_order:
        doubt("model.position=none and no bias: the model cannot tell the order that this task is about")
    if not task.ordered and spec.knows_order:
        doubt("this task is about sets: with positions the order of members matters; set model.position=none")
    word = spec.mechanism if isinstance(spec, Attends) else "softmax"
    kind = part_tables.MECHANISMS.get(part_words.parse(word)[0])
    if not task.ordered and kind is not None and kind.card.ordered:
        doubt(f"this task is about sets: with {word} the order of members matters; use softmax or linear")
    if not task.ordered and part_tables.mask(word) is not None:
        doubt(f"this task is about sets: with {word} a member sees only those that stand near; use softmax")


def doubt(line: str) -> None:
    """Warns in one line."""
    warnings.warn(line, stacklevel=4)
