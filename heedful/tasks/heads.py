"""Losses on where heads look, for any task: they look while the task judges, and what they see carries gradient."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.attention import AdaptiveSpan, Sight
from heedful.attention.mechanisms import SAC
from heedful.attention.mechanisms.reading import present
from heedful.errors import Refusal
from heedful.looking import look
from heedful.looking.look import Seen
from heedful.tasks.task import Batch, Task, Terms

LOOKING = ("disagreement", "guided", "policy")  # terms that every task with attention knows, and look into the model
KNOWN = (*LOOKING, "span")  # and all that every such task knows


def judged(task: Task, model: nn.Module, batch: Batch, terms: Terms) -> tuple[Tensor, Tensor]:
    """The sum of a task's losses and their count; where asked for, with what heads cost, whatever the task."""
    total, count = looked(task, model, batch, terms)
    return (total + count * terms.span * farness(model), count) if terms.span else (total, count)


def farness(model: nn.Module) -> Tensor:
    """How far the heads look that learn it, in positions, as a mean over all of them.

    The loss of adaptive spans (Sukhbaatar et al., 2019), without which none becomes shorter.
    """
    found = [part.spans for part in model.modules() if isinstance(part, AdaptiveSpan)]
    if not found:
        raise Refusal("training.span is for heads that learn how far they look; set model.bias=span or leave it out")
    return torch.cat(found).mean()


def looked(task: Task, model: nn.Module, batch: Batch, terms: Terms) -> tuple[Tensor, Tensor]:
    """The same; where asked for, with what heads are told to do, layer by layer."""
    if terms.policy:
        return by_policy(task, model, batch, terms)
    if not (terms.disagreement or terms.guided):
        return task.loss(model, batch, terms)
    with look(model) as seen:
        total, count = task.loss(model, batch, terms)
    return total + count * heads_told(seen, terms), count


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


def by_policy(task: Task, model: nn.Module, batch: Batch, terms: Terms) -> tuple[Tensor, Tensor]:
    """The losses with edges drawn by chance, which become likelier the better they do than the likeliest ones.

    REINFORCE (Williams, 1992), as Li et al. (2020) train SAC, compared to the loss of the model's own choice.
    """
    choosing = choosers(model)
    with torch.no_grad():
        settled, _ = task.loss(model, batch, terms)
    for part in choosing:
        part.redraw()
    with look(model) as seen:
        total, count = task.loss(model, batch, terms)
    asked = [seen.asked(path) for path in seen.paths]
    taken = torch.stack([of_edges(one, q, k, sight) for one, q, k, sight in asked if isinstance(one, SAC)])
    other = heads_told(seen, terms) if terms.disagreement or terms.guided else taken.new_zeros(())
    for part in choosing:
        part.settle()
    better = (total - settled).detach() / count
    return total + count * (terms.policy * better * taken.mean() + other), count


def choosers(model: nn.Module) -> list[SAC]:
    """The mechanisms of a model that choose whom to see; one without any is refused."""
    found = [part for part in model.modules() if isinstance(part, SAC)]
    if not found:
        raise Refusal("training.policy is for a mechanism that chooses edges; set model.mechanism=sac or leave it out")
    return found


def of_edges(chooser: SAC, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
    """The mean logarithm of the chances of the edges that were drawn."""
    edges = chooser.chosen(q, k, sight)
    return (chooser.chances(q, k, sight) * edges).sum() / edges.sum().clamp(min=1)


def overlap(weights: Tensor, sight: Sight) -> Tensor:
    """How much two heads of a layer look at the same, over all pairs of them: 0 where none do, at most 1.

    Disagreement on attended positions (Li et al., 2018), which is this, less than nothing. Cost: T^2, the weights of
    all layers as tensors.
    """
    heads = weights.shape[1]
    both = weights.sum(1).square() - weights.square().sum(1)  # B T S, twice each pair
    return mean_of_rows(both.sum(-1) / max(1, heads * (heads - 1)), sight)


def astray(weights: Tensor, sight: Sight) -> Tensor:
    """How far the first half of the heads are from looking, by turns, at the one before, the next and the first.

    Guided attention (Deshpande and Narasimhan, 2020): the squared distance to that pattern, where it can be seen.
    Cost: T^2, the weights of all layers as tensors.
    """
    guided = weights[:, : max(1, weights.shape[1] // 2)]
    i, j = sight.rows[:, None, :, None], sight.columns[:, None, None]
    turn = torch.arange(guided.shape[1], device=i.device)[:, None, None] % 3
    wanted = torch.where(turn == 0, i - 1, torch.where(turn == 1, i + 1, 0)) == j  # B|1 H T S
    wanted = wanted & sight.dense[:, : guided.shape[1]]
    away = (guided - wanted.to(guided.dtype)).square().sum(-1) * wanted.any(-1)  # B H T
    return mean_of_rows(away.mean(1), sight)


def mean_of_rows(x: Tensor, sight: Sight) -> Tensor:
    """The mean over rows (B T) that are no padding."""
    there = present(sight, sight.rows)[:, 0, :, 0].expand_as(x).to(x.dtype)
    return (x * there).sum() / there.sum().clamp(min=1)
