"""Before the first step: data are opened, the model is built and tried, what cannot learn is refused or warned of."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from heedful import models, tasks
from heedful.data.collate import to
from heedful.data.near_duplicates import Overlap, by_side
from heedful.data.splits import Splits
from heedful.decoding.search_spec import Decoding
from heedful.errors import Failure, Refusal, short_of_memory
from heedful.models import Spec, part_tables, part_words
from heedful.models.numerics import device_of
from heedful.objectives.head_losses.head_terms import LOOKING, HeadTerms
from heedful.tasks import Task, task_of
from heedful.tasks.closed import Terms
from heedful.tasks.task import Task as Record
from heedful.tasks.work import Work
from heedful.terminal import progress
from heedful.training.adapt.freeze_and_lora import adapt
from heedful.training.adapt.init_from import Begun, begin, check_learns, check_tokens, inherited
from heedful.training.loop import seed_step
from heedful.training.observe.out_of_memory import answered, check_batch
from heedful.training.precision import working_dtype
from heedful.training.run_spec import RunSpec
from heedful.training.trained_run import trained


@dataclass(frozen=True)
class Ready:
    """A run that was checked and can start."""

    run: RunSpec
    task: Task
    splits: Splits[Any]
    model: nn.Module
    start: str = ""  # what the model began with, where that is not chance
    overlaps: tuple[Overlap, ...] = ()  # what of the held-out samples is learned from too


def prepare(run: RunSpec, place: torch.device, begun_in: Path | None = None) -> Ready:
    """Opens the data, builds the model and tries it; what cannot work is refused, what is unlikely to is warned of.

    A run that goes on was begun in a folder, on the same data.
    """
    task, splits, spec = chosen(run, place, begun_in)
    teach(run, task, spec, place)
    with progress("samples are measured"):
        splits = fitting(splits, task, spec, run.data.long_samples)
        longest = max(chain(splits.train, splits.valid, splits.test), key=task.length)
        check_batch(run, spec, [task.length(sample) for sample in splits.train])
    seed_step(run.seed, -1, 0)
    run = run.model_copy(update={"model": spec.model_dump(exclude_none=True)})
    with answered("a first try of the model", run):
        model = models.assemble(spec)
        begun = begin(model, Path(run.start)) if run.start else Begun()
        task.prepare(model)
        check_learns(run, model, begun)
        adapt(model, run.training)
        model.to(place, torch.float64 if run.training.dtype == "float64" else torch.float32)
        rehearse(task, model, [longest, splits.train[0]])
    advise(task, spec)
    return Ready(run, task, splits, model, begun.said, task.overlaps(splits))


def teach(run: RunSpec, task: Task, spec: Spec, place: torch.device) -> None:
    """Gives a task the teacher of its run, where it has one."""
    if run.teacher:
        teacher, learned = trained(Path(run.teacher))
        task.taught_by(teacher.to(place).requires_grad_(False).eval(), learned, spec)


def chosen(run: RunSpec, place: torch.device, begun_in: Path | None = None) -> tuple[Task, Splits[Any], Spec]:
    """The task, its data and the spec of the model, where they can work together; nothing is built yet."""
    kind = task_of(run.task)
    if begun_in is None and not isinstance(kind, Record):
        kind.hears(dict(run.data))
    task, splits = kind.open(run.data, run.seed)
    for name, split in (("train", splits.train), ("valid", splits.valid), ("test", splits.test)):
        if not len(split):
            raise Refusal(f"data.{name} is not given; give all of data.train, data.valid and data.test, or one file")
    check_terms(run, task)
    working_dtype(run.training, place)
    if run.start:
        check_tokens(run, task)
    task.asked(Terms.of(run.training), splits)
    task.decoding = run.decoding
    spec = suited(run, task, begun_in)
    models.check_size(spec)
    return task, splits, spec


def check_terms(run: RunSpec, task: Task) -> None:
    """Refuses what the task's loss does not know."""
    for term in (field.name for field in fields(Terms)):
        value = getattr(run.training, term)
        if value and term not in (*task.terms, *(one.name for one in fields(HeadTerms))):
            raise Refusal(f"training.{term}={value} is nothing that task {task.name!r} knows; leave it out")
    looking = next((term for term in ("guidance", *LOOKING) if getattr(run.training, term)), "")
    if looking and run.training.compile:
        raise Refusal(
            f"training.{looking} looks into the model, and a compiled one cannot be; leave training.compile out"
        )
    if run.training.graphs and not (task.filled or task.even):
        raise Refusal(
            f"training.graphs fills batches up with zeros, which task {task.name!r} would learn; leave it out"
        )
    if run.decoding != Decoding() and not task.writes:
        raise Refusal(f"decoding is for models that write, and this one's task is {task.name}; leave it out")


def fitting(splits: Splits[Any], task: Task, spec: Spec, too_long: str) -> Splits[Any]:
    """The samples that the model can take; what is too long is named, or left out where that was asked for."""
    if too_long == "cut":
        parts = (splits.train, splits.valid, splits.test)
        return Splits(*([task.shortened(sample, spec.length) for sample in part] for part in parts))
    beyond = np.fromiter((task.length(sample) > spec.length for sample in splits.train), np.int64)
    left_out = int(beyond.sum())
    if 0 < left_out < len(splits.train) and too_long == "drop":
        doubt(f"{left_out:,} of {len(splits.train):,} samples to learn from are longer than model.length={spec.length}")
        splits = replace(splits, train=by_side(splits.train, beyond, 1)[0])
    longest = max(chain(splits.train, splits.valid, splits.test), key=task.length)
    length = task.length(longest)
    if length > spec.length:
        learned = too_long == "refuse" and any(task.length(sample) == length for sample in splits.train)
        cuts = task.cuts if isinstance(task, Work) else type(task).shortened is not Task.shortened
        ways = ["leave such samples out with data.too_long=drop"] * learned + ["cut them with data.too_long=cut"] * cuts
        cure = "".join(f", or {way}" for way in ways)
        raise Refusal(
            f"{task.place(longest)}: {length} long and the model takes {spec.length}; "
            f"set model.length={length} or shorten it{cure}"
        )
    return splits


def suited(run: RunSpec, task: Task, begun_in: Path | None = None) -> Spec:
    """The spec of the model that a run asks for, or begins with, where that can learn the task and the data."""
    begun = inherited(run, task) if run.start and task.inherits else {}
    told = task.defaults() | begun | run.model
    family, numbers = told.get("family", task.family), task.numbers()
    if family in list(models.FAMILIES) and family not in (task.family, *task.also):
        known = " or ".join((task.family, *task.also))
        raise Refusal(f"model.family={family} cannot learn task {task.name!r}; set model.family={known}")
    for key, value in numbers.items():
        if run.model.get(key, value) != value and begun_in:
            changed = f"{key} was {run.model[key]} and is {value}; put those back, or choose another --out"
            raise Refusal(f"the data are others than those that {begun_in} was begun with: {changed}")
        if run.model.get(key, value) != value:
            raise Refusal(f"model.{key}={run.model[key]} contradicts the data, which say {value}; leave it out")
    spec = models.spec(**({"family": family} | told | numbers))
    try:
        tasks.suited(task, spec)
    except Refusal as refused:
        if begun_in is None:
            raise
        others = f"the data are others than those that {begun_in} was begun with ({str(refused).partition('; ')[0]})"
        raise Refusal(f"{others}; put those back, or choose another --out") from None
    members, training = getattr(spec, "members", 1), run.training
    if members > 1 and training.tokens:
        raise Refusal(f"training.tokens={training.tokens} leaves some of model.members={members} out; set it to 0")
    if members > training.batch:
        raise Refusal(
            f"training.batch={training.batch} has no sample for some of model.members={members}; make it larger"
        )
    return spec


def rehearse(task: Task, model: nn.Module, samples: Sequence[Any]) -> None:
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


def advise(task: Task, spec: Spec) -> None:
    """Warns of what can run but is unlikely to learn."""
    blind = spec.position == "none" and spec.bias == "none" and not spec.placed
    if task.ordered and blind:
        doubt("model.position=none and no bias: the model cannot tell the order that this task is about")
    if not task.ordered and not blind:
        doubt("this task is about sets: with positions the order of members matters; set model.position=none")
    kind = part_tables.MECHANISMS.get(part_words.parse(spec.mechanism)[0])
    if not task.ordered and kind is not None and kind.card.ordered:
        doubt(f"this task is about sets: with {spec.mechanism} the order of members matters; use softmax or linear")
    if not task.ordered and part_tables.mask(spec.mechanism) is not None:
        doubt(f"this task is about sets: with {spec.mechanism} a member sees only those that stand near; use softmax")


def doubt(line: str) -> None:
    """Warns in one line."""
    warnings.warn(line, stacklevel=4)
