"""Talking heads: heads exchange their scores and their weights."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mechanisms.mechanism import Mechanism, safe_softmax, shared
from heedful.attention.sight import Sight


class TalkingHeads(Mechanism):
    """Scores are mixed over the heads before softmax, and weights after it (Shazeer et al., 2020).

    It starts as softmax, with nothing exchanged. Cost: T^2 in time and memory, for no fused kernel mixes heads. It
    cannot hide a key from one head alone.
    """

    card: ClassVar = Card(
        "Talking-Heads Attention (Shazeer et al., 2020)",
        2020,
        "T^2",
        limits="no fused kernel: T x S numbers for every head; the same mask for all heads",
    )

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.before, self.after = nn.Parameter(torch.eye(heads)), nn.Parameter(torch.eye(heads))

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        if sight.mask.heads > 1:
            raise ValueError("talking heads all see what one of them sees; use a mask that is the same for all heads")
        scores = exchanged(q @ shared(k, q.shape[1]).mT / q.shape[-1] ** 0.5, self.before)
        scores = scores if sight.scores is None else scores + sight.scores.to(scores.dtype)
        return exchanged(safe_softmax(scores, sight), self.after)

    def rows(self, q: Tensor, k: Tensor, sight: Sight, rows: Tensor) -> Tensor:
        return self.weights(q[:, :, rows], k, sight.at(rows))


def exchanged(x: Tensor, mixing: Tensor) -> Tensor:
    """Each head as a mixture of all: B H T S."""
    return torch.einsum("gh,bhts->bgts", mixing.to(x.dtype), x)
