"""Sparse adaptive connection: a policy chooses whom each position sees, and learns by how well that went."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.card import Card
from heedful.attention.mechanism import Mechanism, repeat_kv
from heedful.attention.mechanisms.nystromformer import hidden_softmax
from heedful.attention.sight import Sight

PRIME = 65521
FINE = 1024.0  # steps in which chances are told, so that equals are equals whatever else stands beside them


class SAC(Mechanism):
    """Softmax among the `edges` columns that a policy chooses for each row (Li et al., 2020).

    The policy gives every column that a row sees a chance, and the likeliest are chosen, of equals all. It has no
    gradient from what is seen: `objective.policy` lets it learn by policy gradient, with edges drawn by their chances
    (`redraw`). The paper's policy is a recurrent network that draws one edge after the other. Cost: T^2 as it is
    written here; the paper's is that of the edges.
    """

    draw: Tensor
    card: ClassVar = Card(
        "SAC: Accelerating and Structuring Self-Attention via Sparse Adaptive Connection (Li et al., 2020)",
        2020,
        "T^2",
        limits="whom to see is learned by objective.policy alone; edges are chosen row by row",
        tier="B",
    )

    def __init__(self, heads: int, width: int, edges: int = 8) -> None:
        super().__init__()
        if edges < 1:
            raise ValueError(f"{edges} edges show nothing; choose 1 or more")
        self.edges = edges
        self.policy = nn.Parameter(torch.randn(2, heads, width, width) / width**0.5)  # of queries, of keys
        self.register_buffer("draw", torch.zeros((), dtype=torch.long), persistent=False)

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Edges by chance from now on, by other dice each time; `settle` goes back to the likeliest."""
        self.draw.copy_(torch.randint(1, PRIME, (), generator=generator))

    def settle(self) -> None:
        """The likeliest edges again."""
        self.draw.zero_()

    def chances(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        """The logarithm of each column's chance in each row, far below zero where it is hidden: B H T S."""
        of_queries, of_keys = self.policy.to(q.dtype)
        said = (q.detach() @ of_queries) @ (repeat_kv(k, q.shape[1]).detach() @ of_keys).mT / q.shape[-1] ** 0.5
        return said.masked_fill(~sight.dense, -1e4).log_softmax(-1)

    def chosen(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        """Which columns each row sees: B H T S."""
        with torch.no_grad():
            chances = self.chances(q, k, sight)
            if not chances.shape[-1]:
                return chances.bool()
            drawn = torch.where(self.draw > 0, chances + self.noise(sight, chances), chances)
            drawn = (drawn * FINE).round()
            least = drawn.topk(min(self.edges, drawn.shape[-1]), dim=-1).values[..., -1:]
            return (drawn >= least) & sight.dense

    def noise(self, sight: Sight, like: Tensor) -> Tensor:
        """Gumbel's noise by where row and column stand, the head and the draw: whoever asks again gets the same."""
        _, _, i, j = sight.indices
        h = torch.arange(like.shape[1], device=like.device)[:, None, None]
        mixed = (i * 40503 + j * 30011 + h * 7919 + self.draw) % PRIME
        mixed = (mixed * mixed % PRIME + i + 3 * j) * 48271 % PRIME
        mixed = (mixed * mixed + self.draw) % PRIME
        return -(-((mixed.to(like.dtype) + 0.5) / PRIME).log()).log()

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        scores = q @ repeat_kv(k, q.shape[1]).mT / q.shape[-1] ** 0.5
        scores = scores if sight.scores is None else scores + sight.scores.to(scores.dtype)
        return hidden_softmax(scores, self.chosen(q, k, sight))

    def rows(self, q: Tensor, k: Tensor, sight: Sight, rows: Tensor) -> Tensor:
        return self.weights(q[:, :, rows], k, sight.at(rows))
