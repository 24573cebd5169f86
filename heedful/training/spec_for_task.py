"""Which spec the model of a run has: the one asked for or begun with, where it can learn the task and its data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from heedful import models, tasks
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.models.writer import Writer
from heedful.tasks.work import Work
from heedful.training.adapt.init_from import inherit
from heedful.training.run_spec import RunSpec


def suit_spec(run: RunSpec, task: Work, begun_in: Path | None = None) -> Spec:
    """The spec of the model that a run asks for, or begins with, where that can learn the task and the data."""
    begun = inherit(run, task) if run.whole_start and task.inherits else {}
    family, numbers = str(run.model.get("family", begun.get("family", task.family))), task.facts()
    told = {"family": family} | begun | run.model
    told = models.with_facts(told, {key: value for key, value in task.defaults().items() if key not in told})
    if family in list(models.FAMILIES) and not can_learn(task, family):
        raise cannot_learn(task, family)
    check_facts(run.model, numbers, begun_in)
    spec = models.spec(**models.with_facts(told, numbers))
    if family not in (task.family, *task.also) and not asked_alike(task, models.imagine(spec)):
        raise cannot_learn(task, family)
    try:
        tasks.use_that_suits(task, spec)
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


def can_learn(task: Work, family: str) -> bool:
    """Whether a family is one of those that a task knows, or writes as they do; what it reads, its model says."""
    kinds = models.FAMILIES[task.family].model, models.FAMILIES[family].model
    return family in (task.family, *task.also) or all(issubclass(kind, Writer) for kind in kinds)


def asked_alike(task: Work, model: nn.Module) -> bool:
    """Whether a writer of another family reads what those read that a task knows, and ends as they end."""
    known: Any = models.FAMILIES[task.family].model
    return isinstance(model, Writer) and model.reads == known.reads and model.special == getattr(known, "special", None)


def cannot_learn(task: Work, family: str) -> Refusal:
    """The refusal of a family for a task."""
    known = " or ".join((task.family, *task.also))
    return Refusal(f"model.family={family} cannot learn task {task.name!r}; set model.family={known}")


def check_facts(said: Mapping[str, Any], facts: Mapping[str, Any], begun_in: Path | None, where: str = "model") -> None:
    """Refuses keys of a model, at any depth, that contradict what the data say."""
    for key, value in facts.items():
        if said.get(key, value) != value and begun_in:
            changed = f"{key} was {said[key]} and is {value}; put those back, or choose another --out"
            raise Refusal(f"the data are others than those that {begun_in} was begun with: {changed}")
        if said.get(key, value) != value:
            raise Refusal(f"{where}.{key}={said[key]} contradicts the data, which say {value}; leave it out")
    for key, part in said.items():
        if isinstance(part, Mapping):
            check_facts(part, facts, begun_in, f"{where}.{key}")
