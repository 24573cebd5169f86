"""Losses on attention heads, beside any objective: they see the attention weights, with their gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor, nn

from heedful.looking import look
from heedful.looking.look import Seen
from heedful.objectives.objective import Loss, Weight, primary
from heedful.registry import Registry

HEAD_LOSSES: Registry[Callable[..., Any]] = Registry(
    "loss on heads",
    "heedful.head_losses",
    {
        "disagreement": "heedful.objectives.head_losses.disagreement:overlap",
        "guided": "heedful.objectives.head_losses.guided:astray",
        "policy": "heedful.objectives.head_losses.policy_gradient:by_policy",
        "span": "heedful.objectives.head_losses.span_loss:farness",
    },
)
LOOKING = ("disagreement", "guided", "policy")  # those that look into the model, of heads

Losses = dict[str, Loss]


@dataclass(frozen=True)
class HeadTerms:
    """The weights of the losses on heads, the same for every task; 0 leaves a loss out."""

    disagreement: Weight = 0.0
    """The weight of a loss on heads that look at the same positions (Li et al., 2018)."""
    guided: Weight = 0.0
    """The weight of a loss on heads that stray from fixed patterns (Deshpande and Narasimhan, 2020)."""
    policy: Weight = 0.0
    """The weight of a policy-gradient loss, for mechanisms that choose what to attend to (SAC; Li et al., 2020)."""
    span: Weight = 0.0
    """The weight of a loss on the spans that heads learn (adaptive span; Sukhbaatar et al., 2019)."""

    @classmethod
    def of(cls, numbers: Any) -> Self:
        """Those among the numbers of a run's objective."""
        return cls(**{one.name: value for one in fields(cls) if (value := dict(numbers).get(one.name)) is not None})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the losses that are asked for."""
        return tuple(one.name for one in fields(self) if getattr(self, one.name))

    def losses(self, judge: Callable[[], Losses], model: nn.Module) -> Losses:
        """The losses that an objective finds in a batch, and beside them what heads cost."""
        found = self.looked(judge, model)
        if self.span:
            count = primary(found).count
            found["span"] = Loss(count * HEAD_LOSSES["span"](model), count, self.span)
        own = {name: found.pop(name) for name in self.names}
        return found | own  # in the order of their names

    def looked(self, judge: Callable[[], Losses], model: nn.Module) -> Losses:
        """The same of those that look into the model, layer by layer."""
        if self.policy:
            return HEAD_LOSSES["policy"](judge, model, self.policy, self.patterns)
        if not (self.disagreement or self.guided):
            return judge()
        with look(model) as seen:
            found = judge()
        return found | self.patterns(seen, primary(found).count)

    def patterns(self, seen: Seen, count: Tensor) -> Losses:
        """The losses of heads that look at the same places, or stray from given patterns: a mean over layers."""
        made = {}
        if self.disagreement:
            apart = [HEAD_LOSSES["disagreement"](seen.weights(path), seen.sight(path)) for path in seen.paths]
            made["disagreement"] = Loss(count * torch.stack(apart).mean(), count, self.disagreement)
        if self.guided:
            away = [stray_of_layer(seen, path) for path in seen.paths]
            made["guided"] = Loss(count * torch.stack(away).mean(), count, self.guided)
        return made


def looks(numbers: Any) -> str:
    """The first number of a run's objective for which the model is looked into; nothing where none is."""
    return next((name for name in ("guidance", *LOOKING) if dict(numbers).get(name)), "")


def stray_of_layer(seen: Seen, path: str) -> Tensor:
    """How far the heads of a layer stray; those that look at another sequence are told nothing."""
    sight = seen.sight(path)
    found: Tensor = HEAD_LOSSES["guided"](seen.weights(path), sight)
    return found if sight.rows is sight.columns else torch.zeros_like(found)
