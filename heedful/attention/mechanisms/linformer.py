"""Linformer: a sequence of keys and values shortened to a few, by a matrix that is learned."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.mask_support import check_positions, read_whole
from heedful.attention.sight import Sight


class Linformer(Mechanism):
    """Softmax over `rank` mixtures of keys, each with its mixture of values (Wang et al., 2020).

    The mixtures are learned for every position up to `length`, and shared by the heads; padding is left out of them.
    Cost: T times rank. It cannot hide the future, for every mixture holds some of it, take a bias, or go beyond its
    length.
    """

    card: ClassVar = Card(
        "Linformer: Self-Attention with Linear Complexity (Wang et al., 2020)",
        2020,
        "T",
        limits="never causal; no bias; no masks but padding; sequences up to the length that it was made for",
        causal=False,
        ordered=True,
    )

    def __init__(self, length: int, rank: int = 64) -> None:
        super().__init__()
        if rank < 1:
            raise ValueError(f"a rank of {rank} leaves nothing to look at; choose 1 or more")
        self.length = length
        self.shorten = nn.Parameter(torch.randn(2, rank, length) / length**0.5)  # of keys, of values

    def mixtures(self, sight: Sight, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """How much of every column is in each mixture, of keys and of values: B|1 1 R S each."""
        there = read_whole(sight, "linformer")
        check_positions(sight, self)
        of_keys, of_values = self.shorten.to(dtype)[:, :, sight.columns.clamp(min=0)].transpose(1, 2)  # B|1 R S each
        return of_keys.unsqueeze(1) * there.mT, of_values.unsqueeze(1) * there.mT

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        of_keys, of_values = self.mixtures(sight, q.dtype)
        scores = q @ repeat_kv(of_keys @ k, q.shape[1]).mT / q.shape[-1] ** 0.5
        return scores.softmax(-1) @ of_values

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        of_keys, of_values = self.mixtures(sight, q.dtype)
        return scaled_dot_product_attention(q, of_keys @ k, of_values @ v, enable_gqa=q.shape[1] != k.shape[1])
