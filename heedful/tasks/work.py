"""A task at work: its parts, with what was learned of the data, as training, scoring and asking need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Self

from torch import Tensor, nn

from heedful.data.collate import Batch, Collate
from heedful.data.near_duplicates import Content, Overlap
from heedful.data.readers.reader import Reader
from heedful.data.splits import Splits
from heedful.errors import Refusal
from heedful.looking.page import Samples, Section
from heedful.metrics import METRICS
from heedful.metrics.metric import FIELDS, Metric, check_names, gather_metrics, scores
from heedful.models import Spec
from heedful.objectives import instead
from heedful.objectives.objective import Loss, Objective, combine, primary
from heedful.pipelines.use import Use
from heedful.tasks.task import Task
from heedful.views.finding import Deferred, Finding


@dataclass(frozen=True, eq=False)
class Work(Use):
    """A task with what was learned of its data: what training, scoring and asking hold."""

    chosen: Objective[Any] | None = None  # for its run, by its numbers and its data
    besides: tuple[Metric[Any], ...] = ()  # metrics that are asked for beside its own

    families = property(attrgetter("record.families"))
    watch = property(attrgetter("record.watch"))
    ordered = property(attrgetter("record.ordered"))
    inherits = property(attrgetter("record.inherits"))
    shown = property(attrgetter("record.shown"))
    even = property(attrgetter("record.collate.even"))

    @property
    def task(self) -> Task:
        """The record of its parts."""
        task: Task = self.record
        return task

    @property
    def objective(self) -> Objective[Any]:
        """The objective of the run, or of the task where the run has none."""
        return self.chosen or self.task.objective

    @property
    def metrics(self) -> tuple[Metric[Any], ...]:
        """How the model is scored."""
        return (*self.task.metrics, *self.besides)

    @property
    def filled(self) -> bool:
        """Whether its batches can be filled up with zeros."""
        return self.task.collate.fillable(self.learned)

    # ------------------------------------------------------------------ data

    def reopen(self, reader: Reader, seed: int) -> Splits[Any]:
        """Samples of other data, as this very task takes them."""
        reader, learned = self.task.again(reader, self.learned)
        return self.task.encode(reader.open_samples(seed), learned)

    def judging(self, reader: Reader) -> Self:
        """The same, to judge samples of other data as their reader says."""
        return replace(self, learned=self.task.again(reader, self.learned)[1])

    def defaults(self) -> dict[str, Any]:
        """What it says of the model where nothing else does."""
        own: dict[str, Any] = self.learned.defaults()
        return dict(self.task.model) | own

    def resize_vocab(self, vocab: int) -> int:
        """How many tokens a model should know that knew so many before it began with this."""
        resized: int = self.learned.resize_vocab(vocab)
        return resized

    def describe_data(self, splits: Splits[Any]) -> str:
        """What should be known of the samples before they are learned from, in a line."""
        described: str = self.learned.describe_data(splits)
        return described

    def contents(self, sample: Any) -> Mapping[str, Content]:
        """The parts of a sample whose near-duplicates should not be both learned from and tested on."""
        return self.task.collate.contents(sample)

    def overlaps(self, splits: Splits[Any]) -> tuple[Overlap, ...]:
        """How much of what is held out has near-duplicates in what is learned from."""
        return self.task.collate.overlaps(splits, self.learned)

    def length(self, sample: Any) -> int:
        """How long a sample is, to the model."""
        return self.task.collate.length(sample, self.learned)

    def lengths(self, samples: Sequence[Any], epoch: int) -> Sequence[Any]:
        """How long samples to learn from are in an epoch."""
        return self.task.collate.lengths(samples, epoch, self.learned)

    def augmented(self, samples: Sequence[Any], epoch: int) -> Sequence[Any]:
        """Samples as they are learned from in an epoch."""
        return self.task.collate.augmented(samples, epoch, self.learned)

    def batch(self, samples: Sequence[Any]) -> Batch:
        """Samples as tensors."""
        return self.task.collate.batch(samples, self.learned)

    def shortened(self, sample: Any, longest: int) -> Any:
        """A sample that is cut where it is longer than a model reads."""
        return self.task.collate.shortened(sample, longest, self.learned)

    @property
    def cuts(self) -> bool:
        """Whether samples that are too long can be cut."""
        return type(self.task.collate).shortened is not Collate.shortened

    def source_of(self, sample: Any) -> str:
        """Where a sample was read."""
        return self.task.collate.source_of(sample)

    def as_input(self, sample: Any) -> str:
        """A sample's input as `predict` and `look` take it."""
        return self.task.collate.as_input(sample, self.learned)

    # ------------------------------------------------------------------ learning

    def configured(self, numbers: Mapping[str, Any], splits: Splits[Any]) -> Self:
        """The same, with the numbers of its objective; refuses what the samples do not allow."""
        chosen = instead(self.task.objective, numbers.get("name"))
        own = {one.name for one in fields(chosen)}
        objective = replace(chosen, **{name: value for name, value in numbers.items() if name in own})
        objective, learned = objective.configured(splits, self.learned)
        return replace(self, chosen=objective, learned=learned)

    def taught_by(self, teacher: nn.Module, other: Use, spec: Spec) -> Self:
        """The same, with a trained model that teaches; its task is told too."""
        return replace(self, chosen=self.objective.taught_by(teacher, other.name, other.learned, self.learned, spec))

    def on_train_begin(self, model: nn.Module) -> None:
        """Tells a fresh model what it should know of the data beforehand."""
        self.objective.on_train_begin(model, self.learned)

    def on_step_end(self, model: nn.Module, done: float, together: Callable[[Tensor], Tensor]) -> None:
        """Hears that a step was taken and how much of the run is done."""
        self.objective.on_step_end(model, done, together)

    def inference_model(self, model: nn.Module) -> nn.Module:
        """The model to score and write once it has learned."""
        return self.objective.inference_model(model, self.learned)

    def calibrated(self, model: nn.Module, splits: Splits[Any]) -> Self:
        """The same, with what is chosen on validation data once the model has learned."""
        return replace(self, learned=self.objective.calibrated(model, splits, self.learned))

    def losses(self, model: nn.Module, batch: Batch) -> dict[str, Loss]:
        """The losses of a batch by name, the one that divides first."""
        return self.objective.losses(model, batch, self.learned)

    def loss_counts(self, batch: Batch) -> dict[str, Tensor]:
        """How many there are of each loss in a batch, where they are not as many as of the first."""
        return self.objective.counts(batch, self.learned)

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        """The weighted sum of the losses and how many there are of the first."""
        found = self.losses(model, batch)
        return combine(found), primary(found).count

    # ------------------------------------------------------------------ scoring and showing

    def score(self, model: nn.Module, samples: Sequence[Any]) -> dict[str, float]:
        """How good the model is on samples that it has not seen."""
        return scores(self.measure(model, samples))

    def measure(self, model: nn.Module, samples: Sequence[Any]) -> list[Metric[Any]]:
        """The metrics of a model on samples, with what stands behind their scores."""
        return gather_metrics(self.metrics, self.pipeline.results, model, samples, self.learned, self.tell)

    def measured_by(self, names: Sequence[str]) -> Self:
        """The same, with metrics of these names beside its own."""
        more = [METRICS.named(name)() for name in names]
        known = {score for metric in self.task.metrics for score in metric.names}
        for name, metric in zip(names, more, strict=True):
            if told := known & {*metric.names}:
                raise Refusal(f"metrics={name} gives the score {min(told)}, which is there already; leave it out")
            known |= {*metric.names}
        return replace(self, besides=tuple(more))

    def check_log(self, terms: Sequence[str] = ()) -> None:
        """Refuses losses, its own and those on heads, and scores that would overwrite a field of a run's log."""
        first, *others = (*self.objective.names, *terms)
        check_names("loss", [first])
        check_names("loss", others, (*FIELDS, first, "loss"))
        check_names("score", [name for metric in self.metrics for name in metric.names])

    def show(self, model: nn.Module, samples: Sequence[Any]) -> Samples:
        """Samples with the model's answers, as a table for people."""
        return self.task.table(samples, self.pipeline.results(model, samples, self.learned, self.tell), self.learned)

    def finding(self, model: nn.Module, samples: Sequence[Any]) -> Finding | None:
        """What the views show of a model and its answers."""
        if not self.task.views:
            return None
        results = Deferred(lambda: self.pipeline.results(model, samples, self.learned, self.tell))
        found = [one for view in self.task.views if (one := view(model, samples, results, self.learned)) is not None]
        if not found:
            return None
        others: list[Section] = [part for one in found[1:] for part in (one.figures, *one.more)]
        return replace(found[0], more=(*found[0].more, *others))
