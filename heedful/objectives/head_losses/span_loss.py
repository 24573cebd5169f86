"""The loss of adaptive spans (Sukhbaatar et al., 2019): it costs to look far."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.attention import AdaptiveSpan
from heedful.errors import Refusal


def farness(model: nn.Module) -> Tensor:
    """How far the heads look that learn it, in positions, as a mean over all of them.

    The loss of adaptive spans (Sukhbaatar et al., 2019), without which none becomes shorter.
    """
    found = [part.spans for part in model.modules() if isinstance(part, AdaptiveSpan)]
    if not found:
        raise Refusal("objective.span is for heads that learn how far they look; set model.bias=span or leave it out")
    return torch.cat(found).mean()
