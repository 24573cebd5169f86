"""Gradient against distance: how much an answer still depends on what was read so many steps before its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.data.collate import pick
from heedful.looking.page import Curve, Curves, Figures
from heedful.models.numerics import device_of
from heedful.models.specs import PAD
from heedful.views.finding import Finding, last_attention

SAMPLES = 500


@dataclass(frozen=True)
class GradientByDistance:
    """View of a classifier of tokens: the length of the gradient in each token's vector, by its distance to the end."""

    tokens: Callable[[Any, Any], Tensor]  # of samples and what was learned: B T

    def __call__(self, model: nn.Module, samples: Sequence[Any], results: Any, learned: Any) -> Finding:
        shares = self.measured(model, samples, learned)
        rows = [(f"{at} back", f"{share:.3f}", "of the last one's") for at, share in enumerate(shares) if at % 2 == 0]
        curve = Curve("gradient", tuple(enumerate(shares)), "gradient against distance", log=True, along="steps back")
        figures = Figures("What the answer still depends on", tuple(rows))
        return Finding(figures, last_attention(model), "mean", (Curves("Gradient against distance", (curve,)),))

    def measured(self, model: nn.Module, samples: Sequence[Any], learned: Any) -> list[float]:
        """The mean length of the gradient so many steps back, as a share of that of the last token."""
        tokens = self.tokens(pick(samples, SAMPLES), learned).to(device_of(model))
        lengths = token_gradients(model, tokens)
        there = tokens != PAD
        back = there.sum(1, keepdim=True) - 1 - torch.arange(tokens.shape[1], device=tokens.device)
        means = [lengths[there & (back == at)] for at in range(int(there.sum(1).max()))]
        return [float(one.mean() / means[0].mean()) for one in means]


def token_gradients(model: nn.Module, tokens: Tensor) -> Tensor:
    """The length of the gradient of the likeliest class's log-probability in the vector of each token: B T."""
    table = next(part for part in model.modules() if isinstance(part, nn.Embedding))
    seen: list[Tensor] = []

    def keep(part: nn.Module, given: Any, made: Tensor) -> None:
        seen.append(made)

    model.eval()
    with torch.enable_grad():
        hook = table.register_forward_hook(keep)
        try:
            answer = model(tokens).log_softmax(-1).amax(-1).sum()
        finally:
            hook.remove()
        (slopes,) = torch.autograd.grad(answer, seen)
    return slopes.norm(dim=-1)
