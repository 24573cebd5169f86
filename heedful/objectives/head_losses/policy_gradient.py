"""Edges learned by policy gradient (SAC: Li et al., 2020): those that do better than the likeliest become likelier."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from heedful.attention import Sight
from heedful.attention.mechanisms import SAC
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.look import Seen
from heedful.objectives.objective import Loss, combine, primary

Losses = dict[str, Loss]
Patterns = Callable[[Seen, Tensor], Losses]  # what else is seen of heads, and how many losses there are


def by_policy(judge: Callable[[], Losses], model: nn.Module, weight: float, patterns: Patterns) -> Losses:
    """The losses with edges drawn by chance, which become likelier the better they do than the likeliest ones.

    REINFORCE (Williams, 1992), as Li et al. (2020) train SAC, compared to the loss of the model's own choice.
    """
    choosing = choosers(model)
    with torch.no_grad():
        settled = combine(judge())
    for part in choosing:
        part.redraw()
    with look(model) as seen:
        found = judge()
    asked = [seen.asked(path) for path in seen.paths]
    taken = torch.stack([of_edges(one, q, k, sight) for one, q, k, sight in asked if isinstance(one, SAC)])
    first = primary(found)
    others = patterns(seen, first.count)
    for part in choosing:
        part.settle()
    better = (combine(found) - settled).detach() / first.count
    return found | {"policy": Loss(first.count * better * taken.mean(), first.count, weight)} | others


def choosers(model: nn.Module) -> list[SAC]:
    """The mechanisms of a model that choose whom to see; one without any is refused."""
    found = [part for part in model.modules() if isinstance(part, SAC)]
    if not found:
        raise Refusal("objective.policy is for a mechanism that chooses edges; set model.mechanism=sac or leave it out")
    return found


def of_edges(chooser: SAC, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
    """The mean logarithm of the chances of the edges that were drawn."""
    edges = chooser.chosen(q, k, sight)
    return (chooser.chances(q, k, sight) * edges).sum() / edges.sum().clamp(min=1)
