"""Cross-entropy over a vocabulary, piece by piece, as a batch's scores are its largest tensor; R-Drop beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from heedful.data.collate import Batch
from heedful.objectives.objective import Loss, Objective, Weight

PIECE = 1 << 22  # scores that are worked on at once: few enough for a GPU's cache


@dataclass(frozen=True)
class RDrop(Objective[Any]):
    """Cross-entropy with R-Drop where it is asked for: how far two passes disagree is a loss of its own."""

    consistency: Weight = 0.0
    """The weight of R-Drop: two passes with different dropout should agree (Liang et al., 2021)."""

    @property
    def names(self) -> tuple[str, ...]:
        return ("loss", "consistency") if self.consistency else ("loss",)

    def passes(self, batch: Batch) -> Batch:
        """The batch as the model reads it, twice for two passes."""
        return {name: torch.cat((one, one)) for name, one in batch.items()} if self.consistency else batch

    def judged(self, logits: Tensor, answer: Tensor, ignored: int, smoothing: float = 0.0) -> dict[str, Loss]:
        """The losses of all passes' scores, flat (PN V), for answers (N) of which the ignored ones count nothing."""
        logits, count = logits.unflatten(0, (-1, len(answer))), (answer != ignored).sum()
        if not self.consistency:
            return {"loss": Loss(cross_entropy(logits[0], answer, ignored, smoothing), count)}
        total, apart = consistent(logits, answer, ignored, smoothing)
        return {"loss": Loss(total, count), "consistency": Loss(apart, count, self.consistency)}


def cross_entropy(logits: Tensor, answer: Tensor, ignored: int, smoothing: float = 0.0) -> Tensor:
    """The sum over tokens (N) of what their scores (N V) say against the answers (N); `ignored` ones count nothing."""
    (total,) = Pieces.apply(logits[None], answer, ignored, smoothing)  # type: ignore[no-untyped-call]
    return cast(Tensor, total)


def consistent(logits: Tensor, answer: Tensor, ignored: int, smoothing: float) -> tuple[Tensor, Tensor]:
    """R-Drop (Liang et al., 2021): the mean cross-entropy of two passes (2 N V), and how far they disagree.

    The passes had other dropout. They disagree by the mean of their divergences from each other.
    """
    total, apart = Pieces.apply(logits, answer, ignored, smoothing)  # type: ignore[no-untyped-call]
    return total, apart


class Pieces(torch.autograd.Function):
    """Losses and their gradients, piece by piece in one go: of the scores' size, only the gradients are kept."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, answer: Tensor, ignored: int, smoothing: float) -> tuple[Tensor, ...]:
        """P N V, N -> the sum of the cross-entropy, and of two passes that of the divergence."""
        exact = torch.promote_types(logits.dtype, torch.float32)
        sums = [torch.zeros((), dtype=exact, device=logits.device) for _ in logits]
        ctx.gradients = [torch.empty_like(logits) for _ in sums if ctx.needs_input_grad[0]]
        step = max(1, PIECE // (len(logits) * logits.shape[-1]))
        for start in range(0, len(answer), step):
            rows = slice(start, start + step)
            chances = logits[:, rows].to(exact).log_softmax(-1)  # P n V
            there = (answer[rows] != ignored).to(exact)
            right = answer[rows].masked_fill(answer[rows] == ignored, 0)[None, :, None].expand(len(logits), -1, 1)
            found = [entropy(chances, right, smoothing), *([divergence(chances)] if len(sums) == 2 else [])]
            for at, (loss, slope) in enumerate(found):
                sums[at] += (loss * there).sum()
                if ctx.gradients:
                    ctx.gradients[at][:, rows] = (slope * there[:, None]).to(logits.dtype)
        return tuple(sums)

    @staticmethod
    def backward(ctx: Any, *outer: Any) -> tuple[Tensor, None, None, None]:
        """The gradients that were made on the way."""
        gradients, ctx.gradients = ctx.gradients, None  # used up, so that a second pass backwards fails
        first, *others = (gradient.mul_(one) for gradient, one in zip(gradients, outer, strict=True))
        for gradient in others:
            first.add_(gradient)
        return first, None, None, None


def entropy(chances: Tensor, right: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The cross-entropy of each token (n), and its slope in the scores (P n V).

    Of log-chances (P n V) and answers (P n 1).
    """
    passes, vocab = len(chances), chances.shape[-1]
    shares = chances.exp()
    loss = (1 - smoothing) * chances.gather(-1, right).squeeze(-1).mean(0).neg()
    slope = shares.sub(smoothing / vocab)
    slope.scatter_add_(-1, right, torch.full_like(right, -1, dtype=slope.dtype) * (1 - smoothing))
    slope /= passes
    if smoothing:
        loss = loss - smoothing * chances.mean(-1).mean(0)
    return loss, slope


def divergence(chances: Tensor) -> tuple[Tensor, Tensor]:
    """How far two passes disagree about each token (n), and its slope in the scores (2 n V), of log-chances (2 n V)."""
    shares = chances.exp()
    apart, between = chances[0] - chances[1], shares[0] - shares[1]
    slope = torch.empty_like(chances)
    for own, sign in ((0, 1.0), (1, -1.0)):  # d/dscores of (p - q) (log p - log q) / 2, through the softmax
        pull = shares[own] * apart
        pull -= shares[own] * pull.sum(-1, keepdim=True)
        slope[own] = sign / 2 * (pull + between)
    return (between * apart).sum(-1) / 2, slope
