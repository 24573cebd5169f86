"""Testing: one function that holds a part of one's own to the laws of the project, `heedful.testing.check(part)`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.attention import Bias, Mask
from heedful.attention.mechanisms import Mechanism
from heedful.data.readers.reader import Reader
from heedful.errors import Refusal
from heedful.formats.layout import Layout
from heedful.metrics.metric import Metric
from heedful.models.family import Family
from heedful.objectives import of_fields
from heedful.objectives.objective import Objective
from heedful.tasks import task_of
from heedful.tasks.task import Task
from heedful.testing.broken_law import BrokenLaw
from heedful.testing.family_laws import check_family
from heedful.testing.format_laws import check_layout
from heedful.testing.mask_laws import check_bias, check_mask
from heedful.testing.mechanism_check import check_mechanism
from heedful.testing.recipe_laws import check_recipe
from heedful.testing.task_laws import check_metric, check_objective, check_reader, check_task


def check(part: Any, on: str | Task | None = None, samples: Any = None) -> None:
    """Holds a part of one's own to the laws of the project; one that breaks a law is told which, in one sentence.

    A mechanism, a mask, a bias and a reader are classes; a family and a task are records; a recipe is its name or a
    YAML file. A metric, an objective and a reader are measured `on` a task, by its name or a record of one's own.
    `samples` lie in memory or are a reader's, for a task that makes none on the fly.
    """
    name = getattr(part, "__name__", type(part).__name__)
    tasks = [] if on is None else [task_of(on) if isinstance(on, str) else on]
    match part:
        case str() | Path():
            check_recipe(part)
        case Task():
            check_task(part, samples)
        case Family():
            check_family(name, part)
        case Layout():
            check_layout(name, part)
        case Metric():
            check_metric(name, part, one_of(tasks, name))
        case Objective():
            check_objective(name, replace(one_of(tasks, name), objective=part))
        case type():
            check_class(name, part, tasks)
        case _:
            raise Refusal(f"{part!r} is no part that has laws; give a mechanism, a mask, a task, a recipe's name, ...")


def check_class(name: str, part: type, tasks: list[Task]) -> None:
    """The same of a part that is given as a class, of which a model or a task makes one."""
    if issubclass(part, Mechanism):
        check_mechanism(name, part)
    elif issubclass(part, Mask):
        check_mask(name, part)
    elif issubclass(part, Bias):
        check_bias(name, part)
    elif issubclass(part, Reader):
        check_reader(name, part, tasks or tasks_of(part.tasks))
    elif issubclass(part, Layout):
        check_layout(name, part())
    elif issubclass(part, Metric):
        check_metric(name, part(), one_of(tasks, name))
    elif issubclass(part, Objective):
        task = one_of(tasks, name)
        check_objective(name, replace(task, objective=of_fields(part, task.objective)))
    else:
        raise Refusal(f"{name} is no part that has laws; give a mechanism, a mask, a task, a recipe's name, ...")


def tasks_of(tasks: Iterable[str]) -> list[Task]:
    """The tasks of these names."""
    return [task_of(name) for name in tasks]


def one_of(tasks: list[Task], name: str) -> Task:
    """The task to measure a part on; without one it is refused."""
    if not tasks:
        raise Refusal(f"{name} is measured on a task; name one: check({name}, on='sets')")
    return tasks[0]


__all__ = ["BrokenLaw", "check"]
