"""CSALR: Nystrom's way to put weights together, with an inverse that is always there."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mechanisms.nystromformer import Nystromformer
from heedful.attention.mechanisms.running import exact

MORE = 1.001  # than the identity is added: weights that swap two landmarks have -1 for an eigenvalue


class CSALR(Nystromformer):
    """Softmax through landmarks, whose matrix gets the identity added before it is inverted (Chen et al., 2020).

    Weights are those of queries for landmarks, times that inverse, times those of landmarks for keys. Cost: T times
    landmarks. It cannot hide the future, for every landmark holds some of it, look across, or take a bias; and it is
    not softmax however many landmarks there are.
    """

    card: ClassVar = Card(
        "Compressed Self-Attention for Deep Metric Learning with Low-Rank Approximation (Chen et al., 2020)",
        2020,
        "T",
        limits="never causal nor across; no bias; no masks but padding; rows do not sum to one",
        causal=False,
        ordered=True,
        tier="B",
    )

    name: ClassVar = "csalr"

    def __init__(self, landmarks: int = 64) -> None:
        super().__init__(landmarks)

    def inverse(self, among: Tensor) -> Tensor:
        wide = exact(among)
        one = torch.eye(among.shape[-1], dtype=wide.dtype, device=among.device)
        return torch.linalg.inv(wide + MORE * one).to(among.dtype)
