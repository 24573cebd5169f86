"""Set Transformer: a set is gathered by a few learned points, and looks at those alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention import Attention, Everything, Memory, Sight
from heedful.attention.card import Card
from heedful.attention.mechanisms.mask_support import read_itself


class Induced(nn.Module):
    """Learned `points` look at the whole set, and its members look at what those found (Lee et al., 2019).

    The induced set attention block, ISAB; the pool of the same paper, PMA, is `model.pool=attention`. Cost: T times
    points. It cannot hide the future, for every point holds some of it, take a bias, or write token by token. The
    paper's feed-forward on the points is no part of it.
    """

    card: ClassVar = Card(
        "Set Transformer: A Framework for Attention-based Permutation-Invariant Neural Networks (Lee et al., 2019)",
        2019,
        "T",
        limits="never causal; no bias; no masks but padding",
        causal=False,
        tier="B",
    )

    def __init__(self, attention: Callable[[], Attention], width: int, points: int = 16) -> None:
        super().__init__()
        if points < 1:
            raise ValueError(f"{points} points gather nothing; choose 1 or more")
        self.gather, self.spread = attention(), attention()
        self.points, self.norm = nn.Parameter(torch.randn(points, width)), nn.LayerNorm(width)

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None) -> Tensor:  # B T M -> B T M
        read_itself(sight, "isab")
        points = self.points.to(x.dtype).expand(len(x), -1, -1)
        here = sight.once("points", lambda: Everything().over(points))
        to = sight.once("gather", lambda: Sight(sight.mask, here.rows, sight.columns, sight.batch))
        found = self.norm(points + self.gather.across(points, x, (here, sight), to))
        back = sight.once("spread", lambda: Everything().across(points, sight.rows))
        return self.spread.across(x, found, (sight, here), back)
