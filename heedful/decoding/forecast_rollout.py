"""Rolling a series on: each predicted step is read as if it had been seen."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.attention import Memory
from heedful.decoding.steps import answering
from heedful.errors import Refusal
from heedful.models.series.forecaster import Forecaster
from heedful.models.writer import longest


def roll(model: Forecaster, series: Tensor, steps: int, *, remember: bool = True) -> Tensor:
    """The next `steps` of a series: B T C -> B steps C. With `remember` false the whole is read again at every step."""
    seen, room = series.shape[1], longest(model)
    if seen < 1:
        raise Refusal("a series without a step gives nothing to go on from; give one step or more")
    if seen + steps - 1 > room:
        raise Refusal(
            f"{seen} steps and {steps} more are beyond the {room} positions that the model has learned; ask for fewer"
        )
    memory = Memory(seen + steps) if remember else None
    with answering(model) as running:
        new = series
        for _ in range(steps):
            following = running(new, memory)[:, -1:]
            series = torch.cat((series, following), 1)
            new = series if memory is None else following
    return series[:, seen:]
