"""Metrics (scores): how good answers are, summed sample by sample, so that processes can each do a share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from torch import nn

from heedful.errors import Refusal

FIELDS = ("step", "split", "rate", "seconds", "samples_a_second", "device")  # of a run's log, beside losses and scores
Kept = TypeVar("Kept")  # what was learned of the data
Heard = Callable[[int], object]  # hears how many more samples are done
Source = Callable[[nn.Module, Sequence[Any], Any, Heard], Any]  # what a metric is made of


@dataclass
class Metric(ABC, Generic[Kept]):
    """Metric: one score or several of one unit, made of what a model says of samples.

    What it is made of is its `source`: the results of the task's pipeline where it names none, or a function of its
    own, such as the losses of a batch. Metrics with one source share its pass over the samples.
    """

    names: ClassVar[tuple[str, ...]] = ()  # of its scores, where they do not depend on the data
    share: ClassVar[bool] = False  # from 0 to 1, shown in percent
    more_is_better: ClassVar[bool] = True
    counts_right: ClassVar[tuple[str, ...]] = ()  # scores that are the share of samples whose answer is right
    meaning: ClassVar[str] = ""  # where the name does not say it

    source: Source | None = None

    def fresh(self) -> Self:
        """The same metric, of which nothing is summed yet: a task's own is never written to."""
        return deepcopy(self)

    @abstractmethod
    def update(self, samples: Sequence[Any], seen: Any, learned: Kept) -> None:
        """Adds what a model said of samples."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Adds what another process has summed."""

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """The scores by name."""

    def details(self) -> dict[str, Any]:
        """What stands behind the scores, as JSON: the figures of each class, and which was taken for which."""
        return {}


def evaluate(
    metrics: Sequence[Metric[Any]],
    results: Source,
    model: nn.Module,
    samples: Sequence[Any],
    learned: Any,
    heard: Heard,
) -> dict[str, float]:
    """The scores of a model on samples, each source asked once."""
    return scores(gather_metrics(metrics, results, model, samples, learned, heard))


def gather_metrics(
    metrics: Sequence[Metric[Any]],
    results: Source,
    model: nn.Module,
    samples: Sequence[Any],
    learned: Any,
    heard: Heard,
) -> list[Metric[Any]]:
    """Fresh metrics that have seen what a model says of samples; those of other processes can be merged into them."""
    made = [metric.fresh() for metric in metrics]
    for source in dict.fromkeys(metric.source or results for metric in made):
        seen = source(model, samples, learned, heard)
        for metric in made:
            if (metric.source or results) == source:
                metric.update(samples, seen, learned)
    return made


def scores(metrics: Sequence[Metric[Any]]) -> dict[str, float]:
    """The scores of all metrics, in their order."""
    made = [found for metric in metrics for found in metric.compute().items()]
    check_names("score", [name for name, _ in made])
    return dict(made)


def check_names(what: str, names: Sequence[str], fields: Sequence[str] = FIELDS) -> None:
    """Refuses losses or scores that would overwrite one another, or other fields of a run's log."""
    for at, name in enumerate(names):
        if name in fields:
            raise Refusal(f"the {what} {name!r} would overwrite the field {name!r} of the log; give it another name")
        if name in names[:at]:
            raise Refusal(f"another {what} is called {name!r} too, and a run logs one of them; give it another name")


def details(metrics: Sequence[Metric[Any]]) -> dict[str, Any]:
    """What stands behind the scores of all metrics; of two that say the same, the first."""
    return {name: value for metric in reversed(metrics) for name, value in metric.details().items()}


def metric_of(name: str, metrics: Sequence[Metric[Any]]) -> Metric[Any] | None:
    """The metric that a score is of: the one that names it, or one whose names depend on the data."""
    named = (one for one in metrics if name in one.names)
    return next(named, next((one for one in metrics if not one.names), None))


def is_share(name: str, metrics: Sequence[Metric[Any]]) -> bool:
    """Whether a score is a share of something."""
    found = metric_of(name, metrics)
    return found is not None and found.share


def score_text(name: str, value: float, metrics: Sequence[Metric[Any]]) -> str:
    """A score's value: shares in percent."""
    return f"{100 * value:.2f} %" if is_share(name, metrics) else f"{value:.2f}"


def meaning(name: str, metrics: Sequence[Metric[Any]]) -> str:
    """The meaning of a score, where its name does not say it."""
    found = metric_of(name, metrics)
    return "" if found is None else found.meaning
