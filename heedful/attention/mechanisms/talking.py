"""Talking heads: heads exchange their scores and their weights."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv, safe_softmax
from heedful.attention.sight import Sight
from heedful.errors import Refusal

AT_ONCE = 2**26  # weights of all heads that are made together: 128 rows of 16 heads over 32,768 columns


class TalkingHeads(Mechanism):
    """Scores are mixed over the heads before softmax, and weights after it (Shazeer et al., 2020).

    It starts as softmax, with nothing exchanged. No fused kernel mixes heads: where weights are many, they are made of
    some rows at a time, and once more on the way back. Cost: T^2 in time, memory T. It cannot hide a key from one head
    alone.
    """

    card: ClassVar = Card(
        "Talking-Heads Attention (Shazeer et al., 2020)",
        2020,
        "T^2",
        limits="no fused kernel: some rows at a time, which learning makes twice; the same mask for all heads",
    )

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.before, self.after = nn.Parameter(torch.eye(heads)), nn.Parameter(torch.eye(heads))

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        if sight.mask.heads > 1:
            raise Refusal("talking heads all see what one of them sees; use a mask that is the same for all heads")
        scores = mix_heads(q @ repeat_kv(k, q.shape[1]).mT / q.shape[-1] ** 0.5, self.before)
        scores = scores if sight.scores is None else scores + sight.scores.to(scores.dtype)
        return mix_heads(safe_softmax(scores, sight), self.after)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        count = max(1, AT_ONCE // max(1, q.shape[0] * q.shape[1] * k.shape[2]))
        if q.shape[2] <= count:
            return super().forward(q, k, v, sight)
        k, v, at = repeat_kv(k, q.shape[1]), repeat_kv(v, q.shape[1]), torch.arange(q.shape[2], device=q.device)
        again = partial(checkpoint, self.part, use_reentrant=False, preserve_rng_state=False)  # nothing is drawn
        part = again if torch.is_grad_enabled() else self.part
        # Cut once, and not chosen by index: the gradient of a choice is as large as what it was chosen of.
        parts = zip(q.split(count, 2), at.split(count), strict=True)
        return torch.cat([part(some, k, v, sight, rows) for some, rows in parts], 2)

    def part(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight, rows: Tensor) -> Tensor:
        """The output of some rows, whose queries are q."""
        return super().forward(q, k, v, sight.at(rows))

    def rows(self, q: Tensor, k: Tensor, sight: Sight, rows: Tensor) -> Tensor:
        return self.weights(q[:, :, rows], k, sight.at(rows))


def mix_heads(x: Tensor, mixing: Tensor) -> Tensor:
    """Each head as a mixture of all: B H T S."""
    return torch.einsum("gh,bhts->bgts", mixing.to(x.dtype), x)
