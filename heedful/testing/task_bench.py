"""A task at work on a few samples with a small model, on which its laws are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from heedful import models
from heedful.data.collate import Batch
from heedful.data.readers.in_memory import in_memory
from heedful.data.readers.reader import FILES, Made, Reader
from heedful.tasks.task import Task
from heedful.tasks.work import Work
from heedful.testing.broken_law import BrokenLaw
from heedful.testing.family_laws import SMALL

FEW = {"samples": 60, "held_out": 24, "longest": 12, "shortest": 4, "horizon": 4}
TOGETHER = 4  # samples of a batch
LENGTH = 64  # that a toy reads at most, if that is enough


@dataclass(frozen=True)
class Bench:
    """A task at work on a few samples, with a small model that can learn it."""

    work: Work
    train: Sequence[Any]
    test: Sequence[Any]
    model: nn.Module

    @property
    def batch(self) -> Batch:
        """A few samples to learn from, as tensors."""
        samples = self.work.augmented([self.train[at] for at in range(TOGETHER)], 1)
        return to_float64(self.work.batch(samples))


def to_float64(batch: Batch) -> Batch:
    """A batch whose numbers are in float64."""
    return {name: one.double() if one.is_floating_point() else one for name, one in batch.items()}


def small_reader(kind: type[Reader], name: str, **keys: Any) -> Reader:
    """A reader that is asked for little."""
    given = {key: value for key, value in (FEW | keys).items() if key in kind.model_fields}
    return kind(name=name, **given)


def reader_of(task: Task, samples: Any) -> Reader:
    """Where samples come from: a reader, memory, or the first set that the task can make on the fly."""
    if isinstance(samples, Reader):
        return samples
    if samples is not None:
        return in_memory(task.reader(FILES), samples, {})
    made = [name for name, kind in task.readers.items() if issubclass(kind, Made)]
    if not made:
        raise BrokenLaw(f"task {task.name!r} makes no data on the fly; give some to check(task, samples=[...])")
    return small_reader(task.readers[made[0]], made[0])


def bench_of(task: Task, reader: Reader) -> Bench:
    """A task at work on what a reader gives, with a small model of its first family."""
    work, splits = task.open(reader, 1)
    work = work.configured({}, splits)
    torch.manual_seed(0)
    family, facts = task.families[0], work.facts()
    longest = max(work.length(one) for part in (splits.train, splits.test) for one in part)
    known = models.FAMILIES.named(family).spec.model_fields
    small = {key: value for key, value in (SMALL | {"length": max(longest + 1, LENGTH)}).items() if key in known}
    spec = models.spec(**models.with_facts({"family": family, **small, **work.defaults()}, facts))
    work = work.suited(spec)
    model = models.assemble(spec).double().eval()
    work.on_train_begin(model)
    return Bench(work, splits.train, splits.test, model)
