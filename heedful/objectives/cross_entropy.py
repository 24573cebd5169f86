"""Cross-entropy over a vocabulary, computed piece by piece, because the scores of a batch are its largest tensor."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

PIECE = 1 << 22  # scores that are worked on at once: few enough for a GPU's cache


def cross_entropy(logits: Tensor, answer: Tensor, ignored: int, smoothing: float = 0.0) -> Tensor:
    """The sum over tokens (N) of what their scores (N V) say against the answers (N); `ignored` ones count nothing."""
    return cast(Tensor, Pieces.apply(logits[None], answer, ignored, smoothing, 0.0))  # type: ignore[no-untyped-call]


def consistent(logits: Tensor, answer: Tensor, ignored: int, smoothing: float, consistency: float) -> Tensor:
    """The mean cross-entropy of two passes (2 N V) with other dropout, and how far they disagree.

    R-Drop (Liang et al., 2021): `consistency` times the mean of the two passes' divergences from each other.
    """
    return cast(Tensor, Pieces.apply(logits, answer, ignored, smoothing, consistency))  # type: ignore[no-untyped-call]


class Pieces(torch.autograd.Function):
    """The loss and its gradient, piece by piece in one go, so that nothing as large as the scores is kept for later."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, answer: Tensor, ignored: int, smoothing: float, consistency: float) -> Tensor:
        """P N V, N -> a sum, over one pass or two."""
        exact = torch.promote_types(logits.dtype, torch.float32)
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        total = torch.zeros((), dtype=exact, device=logits.device)
        step = max(1, PIECE // (len(logits) * logits.shape[-1]))
        for start in range(0, len(answer), step):
            rows = slice(start, start + step)
            chances = logits[:, rows].to(exact).log_softmax(-1)  # P n V
            there = (answer[rows] != ignored).to(exact)
            right = answer[rows].masked_fill(answer[rows] == ignored, 0)[None, :, None].expand(len(logits), -1, 1)
            loss, slope = one_piece(chances, right, smoothing, consistency)
            total += (loss * there).sum()
            if gradient is not None:
                gradient[:, rows] = (slope * there[:, None]).to(gradient.dtype)
        ctx.gradient = gradient
        return total

    @staticmethod
    def backward(ctx: Any, *outer: Any) -> tuple[Tensor | None, None, None, None, None]:
        """The gradient that was made on the way."""
        gradient, ctx.gradient = ctx.gradient, None  # used up, so that a second pass backwards fails
        return gradient.mul_(outer[0]), None, None, None, None


def one_piece(chances: Tensor, right: Tensor, smoothing: float, consistency: float) -> tuple[Tensor, Tensor]:
    """The loss of each token (n), and its slope in the scores (P n V), of log-chances (P n V) and answers (P n 1)."""
    passes, vocab = len(chances), chances.shape[-1]
    shares = chances.exp()
    loss = (1 - smoothing) * chances.gather(-1, right).squeeze(-1).mean(0).neg()
    slope = shares.sub(smoothing / vocab)
    slope.scatter_add_(-1, right, torch.full_like(right, -1, dtype=slope.dtype) * (1 - smoothing))
    slope /= passes
    if smoothing:
        loss = loss - smoothing * chances.mean(-1).mean(0)
    if consistency:
        apart, between = chances[0] - chances[1], shares[0] - shares[1]
        loss = loss + consistency / 2 * (between * apart).sum(-1)
        for own, sign in ((0, 1.0), (1, -1.0)):  # d/dscores of (p - q) (log p - log q) / 2, through the softmax
            pull = shares[own] * apart
            pull -= shares[own] * pull.sum(-1, keepdim=True)
            slope[own] += sign * consistency / 2 * (pull + between)
    return loss, slope
