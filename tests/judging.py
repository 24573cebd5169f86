"""The loss of a batch with other numbers of its objective."""

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from heedful.objectives.objective import combine, primary
from heedful.tasks.work import Work


def judged(work: Work, model: nn.Module, batch: dict[str, Tensor], **numbers: Any) -> tuple[Tensor, Tensor]:
    """The weighted sum of the losses, and the count that divides it."""
    losses = replace(work.objective, **numbers).losses(model, batch, work.learned)
    return combine(losses), primary(losses).count
