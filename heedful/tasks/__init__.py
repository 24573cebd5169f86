"""Tasks: what is learned, and how it is scored."""

from heedful.tasks.images import Images
from heedful.tasks.pairs import Pairs
from heedful.tasks.rebuilding import Rebuilding
from heedful.tasks.series import Series
from heedful.tasks.sets import Sets
from heedful.tasks.task import Task
from heedful.tasks.translation import Translation

TASKS: dict[str, type[Task]] = {task.name: task for task in (Pairs, Translation, Sets, Series, Images, Rebuilding)}

__all__ = ["TASKS", "Images", "Pairs", "Rebuilding", "Series", "Sets", "Task", "Translation"]
