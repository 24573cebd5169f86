"""Softmax over scores: the lectures' general attention layer, its scores by dot products here."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from heedful.attention.mechanisms.mechanism import Mechanism, safe_softmax, shared
from heedful.attention.sight import Sight

SLOW = (torch.bfloat16, torch.float16)  # to a CPU: going back through short sequences takes it 2 to 9 times as long
FAST_UP_TO = 256  # columns, as in float32; from twice as many on they are even


class SoftmaxLike(Mechanism):
    """Weights are a softmax of scores, so that a row's weights sum to one. A kind says how its scores are made."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"a dropout of {dropout} is no share; choose one from 0 up to but not including 1")
        self.dropout = dropout

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """How well each query matches each key: B H T D, B H S D -> B H T S."""
        raise NotImplementedError

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        scores = self.scores(q, shared(k, q.shape[1]))
        return safe_softmax(scores if sight.scores is None else scores + sight.scores.to(scores.dtype), sight)

    def rows(self, q: Tensor, k: Tensor, sight: Sight, rows: Tensor) -> Tensor:
        return self.weights(q[:, :, rows], k, sight.at(rows))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        weights = torch.dropout(self.weights(q, k, sight), self.dropout, self.training)
        return weights @ shared(v, q.shape[1])


class Softmax(SoftmaxLike):
    """Dot products scaled by the root of their width, by fused kernels (Vaswani et al., 2017). Cost: T^2, memory T."""

    def __init__(self, dropout: float = 0.0, scale: float | None = None) -> None:
        super().__init__(dropout)
        self.given = scale

    def scale(self, q: Tensor) -> float:
        """What a dot product is multiplied by: the scale that was given, or one by the root of the width."""
        return 1.0 / math.sqrt(q.shape[-1]) if self.given is None else self.given

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT * self.scale(q)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        return fused(q, k, v, sight, self.scale(q), self.dropout if self.training else 0.0)


class Scaled(Softmax):
    """Scaled dot products at a temperature: below 1 sharper, above 1 flatter."""

    def __init__(self, temperature: float = 1.0, dropout: float = 0.0) -> None:
        super().__init__(dropout)
        if not temperature > 0:
            raise ValueError(f"a temperature of {temperature} cannot divide scores; choose one above 0")
        self.temperature = temperature

    def scale(self, q: Tensor) -> float:
        return super().scale(q) / self.temperature


class Dot(Softmax):
    """Plain dot products (Luong et al., 2015)."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__(dropout, scale=1.0)


def fused(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float, dropout: float = 0.0) -> Tensor:
    """softmax(q k^T scale + what the sight adds) v by PyTorch's kernels, never a T x S tensor where the mask allows."""
    kernel: dict[str, Any] = {"dropout_p": dropout, "scale": scale, "enable_gqa": q.shape[1] != k.shape[1]}
    if q.device.type == "cpu" and q.dtype in SLOW and k.shape[2] <= FAST_UP_TO:
        with torch.autocast("cpu", enabled=False):
            return fused(q.float(), k.float(), v.float(), sight, scale, dropout).to(q.dtype)
    if sight.is_causal:
        return scaled_dot_product_attention(q, k, v, is_causal=True, **kernel)
    if sight.pays_in_blocks and not dropout:
        return blockwise(q, k, v, sight, scale)
    seen = sight.added(q.dtype)
    y = scaled_dot_product_attention(q, k, v, seen, **kernel)
    return y if seen is None or not sight.may_be_blind else y.masked_fill(sight.blind, 0.0)


def blockwise(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float) -> Tensor:
    """The same by flex attention, which leaves out blocks that nobody sees."""
    if q.dtype == torch.float32:  # within a group flex sums gradients in one long row, four times farther from exact
        k, v = shared(k, q.shape[1]), shared(v, q.shape[1])
    if sight.order is not None:
        q, k, v = q[:, :, sight.order], k[:, :, sight.order], v[:, :, sight.order]
    grouped = q.shape[1] != k.shape[1]
    y: Tensor = flex()(q, k, v, score_mod=sight.score_mod, block_mask=sight.blocks, scale=scale, enable_gqa=grouped)
    return y if sight.order is None else y[:, :, sight.order.argsort()]


@cache
def flex() -> Any:
    """Flex attention, compiled for each kind of sight that it meets; eager flex would build the whole score matrix."""
    from torch.nn.attention.flex_attention import flex_attention

    # Every kind of mask and dtype is a graph of its own: past torch's limit of 8 it would go on eagerly, in silence.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 64)
    return torch.compile(flex_attention, dynamic=False, fullgraph=True)
