"""Tasks: each is a record of parts, which say what is learned and how a model is scored, asked and looked into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.data.collate import Collate
from heedful.data.readers import READERS
from heedful.data.readers.reader import FILES, Reader
from heedful.data.splits import Splits
from heedful.errors import Refusal, unknown_word
from heedful.metrics.metric import Metric
from heedful.models.writer import Writer
from heedful.objectives.objective import Objective
from heedful.pipelines.learned import Learned
from heedful.pipelines.pipeline import Pipeline
from heedful.views.finding import Table, View

Fit = Callable[[Any, Any, int], Any]  # what is learned of samples as they are read, of the reader and the seed
Encode = Callable[[Any, Any], Splits[Any]]  # samples as they are read, as the task takes them
Again = Callable[[Any, Any], tuple[Any, Any]]  # a reader and what was learned: both, for samples of other data


def as_read(splits: Splits[Any], learned: Any) -> Splits[Any]:
    """Samples as they are read: the task takes these."""
    return splits


def read_unchanged(reader: Reader, learned: Any) -> tuple[Reader, Any]:
    """Other data are read as they say, and nothing is learned of them."""
    return reader, learned


@dataclass(frozen=True, kw_only=True)
class Task:
    """Task: a record of parts, to which nothing is ever written; `dataclasses.replace` makes one with another part."""

    name: str
    readers: Mapping[str, type[Reader]]  # by the names of data; that of `files` serves all other names
    fit: Fit
    learned: type[Learned]
    encode: Encode = as_read
    again: Again = read_unchanged
    collate: Collate[Any]
    objective: Objective[Any]
    metrics: tuple[Metric[Any], ...]
    watch: str  # the score to choose by; more is better
    pipeline: Pipeline[Any]
    table: Table
    views: tuple[View, ...] = ()
    families: tuple[str, ...]  # of models that are known to learn it, the usual one first
    wants: type[Writer] | None = None  # what a model of any other family has to be; none: no other can learn it
    reads: frozenset[str] = frozenset()  # and the fields of a batch that it has to read: these, and no others
    ordered: bool = True  # whether the order of the inputs matters
    inherits: bool = False  # `start` gives it the numbers of its model and the tokenizer too
    shown: int = 0  # samples that are shown at every evaluation
    model: Mapping[str, Any] = field(default_factory=dict)  # what it says of the model where nothing else does

    def reader(self, name: str) -> type[Reader]:
        """The reader of data of a name: a set that is made on the fly or public, a path, or `files`."""
        if name in self.readers:
            return self.readers[name]
        if name in READERS:
            return self.suited_reader(name)
        if FILES not in self.readers:
            raise unknown_word("data", name, self.readers)
        return self.readers[FILES]

    def suited_reader(self, name: str) -> type[Reader]:
        """The reader of a name that no task has for itself; one whose samples are for other tasks is refused."""
        found = READERS[name]
        if self.name not in found.tasks:
            others = " or ".join(found.tasks) or "none"
            raise Refusal(f"data={name} has no samples for task {self.name!r}; its tasks are: {others}")
        return found

    def open(self, reader: Any, seed: int) -> tuple[Any, Splits[Any]]:
        """The task at work on data, and their samples."""
        from heedful.tasks.work import Work

        splits = reader.open_samples(seed)
        if not len(splits.train):
            raise Refusal("data.train is not given; add data.train=...")
        learned = self.fit(splits, reader, seed)
        return Work(self, learned), self.encode(splits, learned)

    def read(self, folder: Path, state: dict[str, Any]) -> Any:
        """The task at work as it was written beside a model."""
        from heedful.tasks.work import Work

        return Work(self, self.learned.read(folder, state))
