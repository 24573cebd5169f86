"""Tasks: what is learned, and how it is scored."""

from heedful.tasks.pairs import Pairs
from heedful.tasks.series import Series
from heedful.tasks.sets import Sets
from heedful.tasks.task import Task

TASKS: dict[str, type[Task]] = {task.name: task for task in (Pairs, Sets, Series)}

__all__ = ["TASKS", "Pairs", "Series", "Sets", "Task"]
