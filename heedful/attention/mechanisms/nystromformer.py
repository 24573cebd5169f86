"""Nystromformer: the matrix of weights put together of a few of its rows and columns."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.mask_support import read_itself
from heedful.attention.sight import Sight


class Nystromformer(Mechanism):
    """Softmax through `landmarks`, the means of as many segments of queries and of keys (Xiong et al., 2021).

    Weights are those of queries for landmarks, times the pseudo-inverse of those among landmarks, times those of
    landmarks for keys; the inverse is made in a few steps of Newton's method. Segments are those of each sequence's
    own length; where it has no more members than landmarks, each is a segment. Cost: T times landmarks. It cannot
    hide the future, for every segment holds some of it, look across, or take a bias. Weights may be below zero. The
    paper's convolution of the values is no part of it.
    """

    card: ClassVar = Card(
        "Nystromformer: A Nystrom-Based Algorithm for Approximating Self-Attention (Xiong et al., 2021)",
        2021,
        "T",
        limits="never causal nor across; no bias; no masks but padding",
        causal=False,
        ordered=True,
    )

    name: ClassVar = "nystromformer"

    def __init__(self, landmarks: int = 64, iterations: int = 6) -> None:
        super().__init__()
        if landmarks < 1 or iterations < 1:
            raise ValueError(f"landmarks={landmarks} and iterations={iterations} are too few; choose 1 or more of both")
        self.landmarks, self.iterations = landmarks, iterations

    def parts(self, q: Tensor, k: Tensor, sight: Sight) -> tuple[Tensor, Tensor, Tensor]:
        """Weights of rows for landmarks, their inverse among themselves, and of landmarks for columns."""
        there = read_itself(sight, self.name)
        mean = sight.once(("segments", self.landmarks), lambda: segments(there, self.landmarks))  # B|1 1 L T
        k, mean = repeat_kv(k, q.shape[1]) * q.shape[-1] ** -0.5, mean.to(q.dtype)
        some_q, some_k, there, marked = mean @ q, mean @ k, there.mT, mean.any(-1, keepdim=True).mT
        one = torch.eye(mean.shape[2], dtype=q.dtype, device=q.device)
        among = hidden_softmax(some_q @ some_k.mT, marked)
        inverse = self.inverse(torch.where(marked.mT, among, one))
        return hidden_softmax(q @ some_k.mT, marked), inverse, hidden_softmax(some_q @ k.mT, there)

    def inverse(self, among: Tensor) -> Tensor:
        """The inverse of the weights among landmarks, or something like it: B H L L."""
        return pseudo_inverse(among, self.iterations)

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        to, inverse, of = self.parts(q, k, sight)
        return to @ inverse @ of

    def forward(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        to, inverse, of = self.parts(q, k, sight)
        return to @ (inverse @ (of @ repeat_kv(v, q.shape[1])))


def segments(there: Tensor, landmarks: int) -> Tensor:
    """The mean of each segment of those who are there (B|1 1 T 1), as a matrix: B|1 1 L T. Some may have no segment."""
    count = there.sum(2, keepdim=True)
    landmarks = max(1, min(landmarks, there.shape[2]))
    which = (there.cumsum(2) - 1) * count.clamp(max=landmarks) // count.clamp(min=1)  # B|1 1 T 1
    within = (which.mT == torch.arange(landmarks, device=there.device)[:, None]) & there.mT
    return within / within.sum(-1, keepdim=True).clamp(min=1)


def hidden_softmax(scores: Tensor, seen: Tensor) -> Tensor:
    """Softmax over what is seen; zero where nothing is."""
    blind = ~seen.any(-1, keepdim=True)
    return scores.masked_fill(~(seen | blind), -torch.inf).softmax(-1).masked_fill(blind, 0.0)


def pseudo_inverse(x: Tensor, iterations: int) -> Tensor:
    """The pseudo-inverse of matrices whose rows sum to one, by a method of third order (Razavi et al., 2014)."""
    one = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    guess = x.mT / x.sum(-2).amax(-1)[..., None, None]
    for _ in range(iterations):
        close = x @ guess
        guess = guess @ (13 * one - close @ (15 * one - close @ (7 * one - close))) / 4
    return guess
