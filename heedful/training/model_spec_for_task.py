"""Which spec the model of a run has: the one asked for or begun with, where it can learn the task and its data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful import models, tasks
from heedful.errors import Refusal
from heedful.models import Spec
from heedful.tasks.work import Work
from heedful.training.spec.run_spec import RunSpec


def suit_spec(run: RunSpec, task: Work, begun_in: Path | None = None) -> tuple[Work, Spec]:
    """The spec of the model that a run asks for, or begins with, where that can learn the task, and the task for it."""
    begun: dict[str, Any] = {}
    if run.whole_start and task.inherits:
        from heedful.training.adapt.init_from import inherit

        begun = inherit(run, task)
    family, numbers = str(run.model.get("family", begun.get("family", task.families[0]))), task.facts()
    told = {"family": family} | begun | run.model
    told = models.with_facts(told, {key: value for key, value in task.defaults().items() if key not in told})
    if family in list(models.FAMILIES) and not can_learn(task, family):
        raise cannot_learn(task, family)
    check_facts(run.model, numbers, begun_in)
    spec = models.spec(**models.with_facts(told, numbers))
    if not know(task, family) and not reads_alike(task, models.imagine(spec)):
        raise cannot_learn(task, family)
    try:
        task = tasks.use_that_suits(task, spec)
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
    return task, spec


def can_learn(task: Work, family: str) -> bool:
    """Whether a task and a family know one another, or it may be what the task wants: its model says what it reads."""
    kind: Any = models.FAMILIES[family].model
    wanted = task.task.wants is not None and issubclass(kind, task.task.wants)
    reads = kind.reads if wanted and isinstance(kind.reads, frozenset) else task.task.reads
    return know(task, family) or (wanted and reads == task.task.reads)


def know(task: Work, family: str) -> bool:
    """Whether the record of a task names a family, or a family the task."""
    return family in task.task.families or task.name in models.FAMILIES[family].tasks


def reads_alike(task: Work, model: Any) -> bool:
    """Whether a model reads what a task wants to be read, and begins and ends what it writes as the task does."""
    learned: Any = task.learned
    return bool(model.reads == task.task.reads and model.special == learned.special)


def cannot_learn(task: Work, family: str) -> Refusal:
    """The refusal of a family for a task."""
    known = " or ".join(task.families)
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
