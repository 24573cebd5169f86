"""The cost of a run in floating-point operations, counted on a few of its own batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from heedful.data.collate import to
from heedful.training.loop import Loop

COUNTED = 8  # steps of the first epoch, evenly spread
BACK = 2  # a pass backwards costs twice the pass forwards


def operations(loop: Loop) -> int:
    """The operations of all steps of a run."""
    return round(operations_a_step(loop) * loop.progress.step)


def operations_a_step(loop: Loop) -> float:
    """The operations of a step, forwards and backwards, padding counted; matrix products alone."""
    steps = loop.portions.plan.steps
    chosen = sorted({at * steps // COUNTED for at in range(COUNTED)})
    counted = [forwards(loop, loop.portions.samples(step)) for step in chosen]
    return sum(counted) / len(counted) * (1 + BACK)


@torch.no_grad()
def forwards(loop: Loop, samples: Sequence[Any]) -> int:
    """The operations of one pass forwards over samples."""
    counter = FlopCounterMode(display=False)
    with counter, at_rest(loop):
        loop.task.loss(loop.model, to(loop.task.batch(samples), loop.device))
    return int(counter.get_total_flops())


@contextmanager
def at_rest(loop: Loop) -> Iterator[None]:
    """No weight learns meanwhile: torch's counter stumbles over views of those that do, as of a learned query.

    Members share a batch, as they do while they learn.
    """
    sharing: list[nn.Module] = []
    if loop.run.model.get("members", 1) > 1:
        from heedful.models.ensemble import Members

        sharing = [part for part in loop.model.modules() if isinstance(part, Members) and not part.training]
    learning = [weight for weight in loop.model.parameters() if weight.requires_grad]
    for weight in learning:
        weight.requires_grad_(False)
    for part in sharing:
        part.training = True
    try:
        yield
    finally:
        for weight in learning:
            weight.requires_grad_(True)
        for part in sharing:
            part.training = False
