"""Gated positional self-attention: each head weighs by content and by place, and learns how much of each.

ConViT (d'Ascoli et al., 2021). A head begins as one cell of a convolution's window.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.attention import Attention
from heedful.attention.card import Card
from heedful.attention.grid.grid_sight import GridSight
from heedful.attention.kv_cache import Memory
from heedful.attention.mask_and_bias import Bias
from heedful.attention.mechanism import Mechanism, repeat_kv, safe_softmax
from heedful.attention.mechanisms.softmax import Softmax
from heedful.attention.projections import Join, MultiHead
from heedful.attention.sight import Sight
from heedful.errors import Refusal

CONTENT = Softmax()  # which has no weights, and is no part of any model


class Places(Bias):
    """How well a head likes the way from cell to cell: of its columns, its rows, and its squared length."""

    def __init__(self, likes: nn.Linear, columns: int) -> None:
        super().__init__()
        self.likes, self.columns, self.heads = likes, columns, likes.out_features

    def adds(self, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        weight, exact = self.likes.weight, self.likes.weight.dtype
        across, down = (
            (j % self.columns - i % self.columns).to(exact),
            (j // self.columns - i // self.columns).to(exact),
        )
        likes = [weight[:, at][self.place(h)] for at in range(3)]
        return across * likes[0] + down * likes[1] + (across**2 + down**2) * likes[2] + self.likes.bias[self.place(h)]


class Gated(Mechanism):
    """A mean of weights by content and of weights by place, which the sight's bias tells, each a softmax."""

    card: ClassVar = Card(
        "ConViT: Improving Vision Transformers with Soft Convolutional Inductive Biases (d'Ascoli et al., 2021)",
        2021,
        "T^2",
        causal=False,
        ordered=True,
    )

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.ones(heads))

    @property
    def share(self) -> Tensor:
        """How much each head weighs by place: H 1 1."""
        return self.gate.sigmoid()[:, None, None]

    def placed(self, sight: Sight) -> Tensor:
        """Weights by place alone: B|1 H T S."""
        if sight.scores is None:
            raise Refusal("gated attention weighs by place, and the sight tells of none; use softmax")
        return safe_softmax(sight.scores, sight)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        content = safe_softmax(q @ repeat_kv(k, q.shape[1]).mT / math.sqrt(q.shape[-1]), sight)
        return torch.lerp(
            content, self.placed(sight).to(content.dtype).expand_as(content), self.share.to(content.dtype)
        )

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        plain = Sight(sight.mask, sight.rows, sight.columns, sight.batch, None, sight.order, sight.counted)
        content = CONTENT(q, k, v, plain)
        return torch.lerp(content, self.placed(sight).to(v.dtype) @ repeat_kv(v, q.shape[1]), self.share.to(v.dtype))


class GatedAttention(Attention):
    """Attention of a grid, gated between content and place."""

    def __init__(self, project: MultiHead, join: Join, strength: float = 1.0) -> None:
        super().__init__(project, Gated(project.heads), join)
        self.likes = nn.Linear(3, project.heads)
        self.begin(strength)

    @torch.no_grad()
    def begin(self, strength: float) -> None:
        """Lets heads look at the cells of a window around each cell, one each, and pass on what they see."""
        side = int(self.project.heads**0.5)
        middle = (side - 1) / 2 if side % 2 == 0 else side // 2
        for down in range(side):
            for across in range(side):
                row = self.likes.weight[down + side * across]
                row.copy_(strength * torch.tensor([2 * (across - middle), 2 * (down - middle), -1.0]))
        values = self.project.to_qkv.weight[-self.project.parts[2] :]
        values.copy_(torch.eye(*values.shape))

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None) -> Tensor:  # B T M -> B T M
        if not isinstance(sight, GridSight) or sight.leading:
            raise Refusal("gated attention looks at the cells of a grid, and this sequence is not a grid; use softmax")
        return super().forward(x, sight.plus(Places(self.likes, sight.shape[1])))
