"""Objectives (loss functions): what a model is told of a batch, as named losses, each a sum, a count and a weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, Generic, Self, TypeVar, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.data.splits import Splits
from heedful.errors import Refusal

SCALES = "loss_scales"  # field of a batch: how many of the first loss there are in the step for one of each
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Kept = TypeVar("Kept")  # what was learned of the data


@dataclass(frozen=True)
class Loss:
    """The sum of one named loss over a batch, how many there are of it, and what it weighs beside the others."""

    sum: Tensor
    count: Tensor
    weight: float = 1.0


@dataclass(frozen=True)
class Objective(ABC, Generic[Kept]):
    """Objective: the model maps, the objective judges. Its numbers, such as label smoothing, are its fields.

    The count of the first loss divides the gradients once, over all micro-batches and processes. Where others have
    counts of their own, these are known before the first gradient: `counts` says them, of a batch alone.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its losses, the same for every batch."""
        return ("loss",)

    @abstractmethod
    def losses(self, model: nn.Module, batch: Batch, learned: Kept) -> dict[str, Loss]:
        """The losses of a batch by name, the one that divides first."""

    def counts(self, batch: Batch, learned: Kept) -> dict[str, Tensor]:
        """How many there are of each loss in a batch, where they are not as many as of the first."""
        return {}

    def configured(self, splits: Splits[Any], learned: Kept) -> tuple[Self, Kept]:
        """The objective for such samples, and what is kept of them for it; refuses what they do not allow."""
        return self, learned

    def taught_by(self, teacher: nn.Module, task: str, taught: Any, learned: Kept, spec: Any) -> Self:
        """The objective with a trained model that teaches; refuses one from which nothing can be learned."""
        raise Refusal("this task has no use for a teacher; leave teacher out")

    def on_train_begin(self, model: nn.Module, learned: Kept) -> None:
        """Tells a fresh model what it should know of the data beforehand."""
        return

    def on_step_end(self, model: nn.Module, done: float, together: Callable[[Tensor], Tensor]) -> None:
        """Hears that a step was taken and how much of the run is done; `together` sums over all processes."""
        return

    def calibrated(self, model: nn.Module, splits: Splits[Any], learned: Kept) -> Kept:
        """What is kept of the data, with what is chosen on validation data once the model has learned."""
        return learned

    def inference_model(self, model: nn.Module, learned: Kept) -> nn.Module:
        """The model to score, look into and write once it has learned."""
        return model


@cache
def numbers_of(*kinds: type) -> type[BaseModel]:
    """The keys of an objective: the numbers among the fields of dataclasses, with their bounds."""
    found: dict[str, Any] = {"name": (str | None, None)}  # of the objective, where it is not the task's own
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        found |= {
            one.name: (hints[one.name], one.default) for one in fields(kind) if get_origin(hints[one.name]) is Annotated
        }
    return create_model("Numbers", __config__=ConfigDict(frozen=True, extra="forbid", strict=True), **found)


def primary(losses: dict[str, Loss]) -> Loss:
    """The first loss, whose count divides the gradients."""
    return next(iter(losses.values()))


def combine(losses: dict[str, Loss], scales: Tensor | None = None) -> Tensor:
    """The weighted sum of losses; `scales` say how many of the first there are for one of each, in the whole step."""
    total = sum_of(primary(losses))
    for at, one in enumerate(list(losses.values())[1:], 1):
        total = total + (sum_of(one) if scales is None else scales[at] * sum_of(one))
    return total


def sum_of(loss: Loss) -> Tensor:
    """The sum of a loss, times what it weighs."""
    return loss.sum if loss.weight == 1.0 else loss.weight * loss.sum
