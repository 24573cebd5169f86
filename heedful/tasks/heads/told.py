"""Losses on where heads look, for any task: they look while the task judges, and what they see carries gradient."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.data.collate import Batch
from heedful.looking import look
from heedful.looking.look import Seen
from heedful.tasks.closed import Task, Terms
from heedful.tasks.heads.disagreement import overlap
from heedful.tasks.heads.guided import astray
from heedful.tasks.heads.policy import by_policy
from heedful.tasks.heads.span import farness

LOOKING = ("disagreement", "guided", "policy")  # terms that every task with attention knows, and look into the model
KNOWN = (*LOOKING, "span")  # and all that every such task knows


def judged(task: Task, model: nn.Module, batch: Batch, terms: Terms) -> tuple[Tensor, Tensor]:
    """The sum of a task's losses and their count; where asked for, with what heads cost, whatever the task."""
    total, count = looked(task, model, batch, terms)
    return (total + count * terms.span * farness(model), count) if terms.span else (total, count)


def looked(task: Task, model: nn.Module, batch: Batch, terms: Terms) -> tuple[Tensor, Tensor]:
    """The same; where asked for, with what heads are told to do, layer by layer."""
    told = heads_told if terms.disagreement or terms.guided else None
    if terms.policy:
        return by_policy(task, model, batch, terms, told)
    if not told:
        return task.loss(model, batch, terms)
    with look(model) as seen:
        total, count = task.loss(model, batch, terms)
    return total + count * told(seen, terms), count


def heads_told(seen: Seen, terms: Terms) -> Tensor:
    """What heads cost that do not do as they are told, as a mean over layers."""
    added = []
    for path in seen.paths:
        weights, sight = seen.weights(path), seen.sight(path)
        said = terms.disagreement * overlap(weights, sight)
        if sight.rows is sight.columns:
            said = said + terms.guided * astray(weights, sight)
        added.append(said)
    return torch.stack(added).mean()
