"""Truncation of the chances of the next token before one is drawn: a temperature, and three ways to cut the tail."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.errors import Refusal


@dataclass(frozen=True)
class Cuts:
    """A temperature, then the three cuts one after the other; each cut sees what the one before it left."""

    temperature: float = 1.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise Refusal(f"temperature={self.temperature} cannot be drawn with; give a finite number above 0")
        if self.top_k < 0:
            raise Refusal(f"top_k={self.top_k} is below 0; give how many tokens to draw among, or 0 for all")
        if not 0 < self.top_p <= 1:
            raise Refusal(f"top_p={self.top_p} is no share to draw among; give more than 0 and at most 1")
        if not 0 <= self.min_p < 1:
            raise Refusal(f"min_p={self.min_p} is no share to draw above; give 0 or more and less than 1")

    def __call__(self, chances: Tensor) -> Tensor:
        """The scores (B V) to draw from, of log-probabilities (B V); what is cut stands at -inf."""
        scores = apply_temperature(chances, self.temperature)
        if self.top_k:
            scores = likeliest(scores, self.top_k)
        if self.top_p < 1.0:
            scores = nucleus(scores, self.top_p)
        if self.min_p:
            scores = not_far_behind(scores, self.min_p)
        return scores


def apply_temperature(scores: Tensor, temperature: float) -> Tensor:
    """The scores over a temperature: below 1 the likely become likelier, towards 0 only the likeliest are left."""
    finite = torch.finfo(scores.dtype)
    behind = scores - scores.amax(-1, keepdim=True)  # the first stays at 0, so that no division makes all infinite
    return behind / min(max(temperature, finite.tiny), finite.max)


def likeliest(scores: Tensor, count: int) -> Tensor:
    """The `count` highest scores of each row alone, and what is as high as the last of them (Fan et al., 2018)."""
    last = scores.topk(min(count, scores.shape[-1])).values[..., -1:]
    return scores.masked_fill(scores < last, -torch.inf)


def nucleus(scores: Tensor, share: float) -> Tensor:
    """The fewest tokens, the likeliest first, that together have a `share` of the chances (Holtzman et al., 2020).

    A token goes where it and all behind it have no more than what the share leaves over; of equals the first stays.
    """
    ordered, order = scores.sort(dim=-1, descending=True, stable=True)
    below = ordered.flip(-1).softmax(-1).cumsum(-1).flip(-1)  # from the least on, so that small ones are not lost
    goes = below <= 1 - share
    goes[..., 0] = False
    return scores.masked_fill(goes.scatter(-1, order, goes), -torch.inf)


def not_far_behind(scores: Tensor, share: float) -> Tensor:
    """The tokens with at least a `share` of the likeliest one's chance (min-p: Nguyen et al., 2024)."""
    chances = scores.softmax(-1)
    return scores.masked_fill(chances < share * chances.amax(-1, keepdim=True), -torch.inf)
