"""Random feature attention: softmax among vectors of one length by sines and cosines, in linear time."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, normalize, pad

from heedful.attention.card import Card
from heedful.attention.mechanism import repeat_kv
from heedful.attention.mechanisms.linear import CHUNK, LinearLike
from heedful.attention.mechanisms.mask_support import reading_of
from heedful.attention.mechanisms.running import Given, chunks, earlier, exact
from heedful.attention.sight import Sight

LASTING = 4.0  # of a gate before it learns: half of what was written is left 38 steps later
LEAST = math.exp(-2)  # that a member adds to a row's sum, vectors being of length 1; what is lower is an error


class RFA(LinearLike):
    """Softmax of queries and keys of length 1, estimated by random sines and cosines (Peng et al., 2021).

    The mean over random w of sin(w.q) sin(w.k) + cos(w.q) cos(w.k) is exp(q.k) up to a factor that falls out. Cost: T,
    in time and memory; a new token costs the same however many came before. The error falls as the root of the number
    of `features`; an estimate may be below zero. It takes no bias, and hides padding and the future alone.
    """

    directions: Tensor
    card: ClassVar = Card(
        "Random Feature Attention (Peng et al., 2021)",
        2021,
        "T",
        limits="an estimate, of queries and keys of one length; no bias; no masks but padding and causal",
        tier="B",
    )

    def __init__(self, width: int, features: int = 64) -> None:
        super().__init__()
        if features < 1:
            raise ValueError(f"{features} features say nothing; choose 1 or more, 64 for instance")
        self.register_buffer("directions", torch.randn(features, width))

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Other random features. Nothing else ever changes them."""
        self.directions.copy_(torch.randn(self.directions.shape, generator=generator))

    def of_queries(self, q: Tensor) -> Tensor:
        angle = normalize(q, dim=-1) @ self.directions.to(q.dtype).mT
        return torch.cat((angle.sin(), angle.cos()), -1) * len(self.directions) ** -0.5

    def of_keys(self, k: Tensor) -> Tensor:
        return self.of_queries(k)

    def given(self, q: Tensor, k: Tensor, v: Tensor, there: Tensor) -> Given:
        """In float64: features of either sign cancel one another, where sums are made before products."""
        return super().given(q.double(), k.double(), v.double(), there)

    def portioned(self, y: Tensor, total: Tensor) -> Tensor:
        return y / total.clamp(min=LEAST)


class GatedRFA(RFA):
    """Random feature attention with a gate that forgets what is long ago: RFA-Gate (Peng et al., 2021).

    Each key says by its last channel, through a sigmoid, how much of all before it is kept; it counts itself for the
    rest. Cost: T, in time and memory; a new token costs the same however many came before. It forgets in the order of
    time even where nothing is hidden. It takes no bias, and hides padding and the future alone. Models refuse rotary
    positions with it: they would turn the gate too, which is no direction.
    """

    card: ClassVar = Card(
        "Random Feature Attention (Peng et al., 2021)",
        2021,
        "T",
        limits="an estimate; forgets in the order of time; no bias; no masks but padding and causal; not with rotary "
        "positions",
        tier="B",
        ordered=True,
    )
    turns: ClassVar[bool] = False

    def __init__(self, heads: int, width: int, features: int = 64) -> None:
        if width < 2:
            raise ValueError(f"a head of {width} channels has no channel beside its gate; widen it or choose rfa")
        super().__init__(width - 1, features)
        self.gate = nn.Parameter(torch.full((heads, 1, 1), LASTING))

    def of_queries(self, q: Tensor) -> Tensor:
        return super().of_queries(q[..., :-1])

    def gates(self, k: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithm of what each key leaves of all before it, and what it counts itself: B H S 1 both."""
        said = repeat_kv(k[..., -1:], len(self.gate)) + self.gate.to(k.dtype)
        return logsigmoid(said) * there, (-said).sigmoid() * there

    def weights(self, q: Tensor, k: Tensor, sight: Sight) -> Tensor:
        there = reading_of(sight, self.word).there
        asked, keys = self.of_queries(exact(q)), repeat_kv(self.of_keys(exact(k)), q.shape[1])
        left, counts = self.gates(exact(k), there)
        since = (sight.dense * left.mT) @ earlier(sight.columns).to(left.dtype)  # by all that a row sees and came later
        counted = counts.mT * since.exp() * sight.dense
        made = asked @ keys.mT * counted
        return portions(made, made.sum(-1, keepdim=True), counted.sum(-1, keepdim=True)).to(q.dtype)

    def given(self, q: Tensor, k: Tensor, v: Tensor, there: Tensor) -> Given:
        asked, keys, one = super().given(q, k, v, there)
        left, counts = self.gates(k.double(), there)
        keys = pad(keys, (0, 1), value=1.0) * counts  # a last feature, whose sum is what all that is written counts
        return pad(asked, (0, 1)), keys, one, left

    def run(self, given: Given, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, v, left = (chunks(x, CHUNK) for x in given)
        since = left.cumsum(3)  # what is left of all before a chunk: B H N C 1
        later = torch.ones(2 * since.shape[3:4], dtype=torch.bool, device=q.device).triu(1)
        within = (since - since.mT).masked_fill(later, -torch.inf).exp()
        after, written = since[..., -1:, :].exp(), (k * (since[..., -1:, :] - since).exp()).mT @ v
        state = torch.zeros_like(written[:, :, 0]) if past is None else past
        states = []
        for leaves, adds in zip(after.unbind(2), written.unbind(2), strict=True):
            states.append(state)
            state = leaves * state + adds
        before = torch.stack(states, 2)
        y = (q @ k.mT * within) @ v + since.exp() * (q @ before)
        counted = 1 - since.exp() * (1 - before[..., -1:, -1:])
        return torch.cat((y, counted), -1).flatten(2, 3)[:, :, : given[0].shape[2]], state

    def written(self, given: Given) -> Tensor:
        return self.added(given, None)

    def added(self, given: Given, past: Tensor | None) -> Tensor:
        _, k, v, left = given
        whole = left.sum(2, keepdim=True)
        written = (k * (whole - left.cumsum(2)).exp()).mT @ v
        return written if past is None else whole.exp() * past + written

    def reads(self, asked: Tensor, sum: Tensor) -> Tensor:
        return torch.cat((asked @ sum, sum[..., -1:, -1:].expand(-1, -1, asked.shape[2], -1)), -1)

    def finished(self, y: Tensor) -> Tensor:
        return portions(y[..., :-2], y[..., -2:-1], y[..., -1:])


def portions(y: Tensor, total: Tensor, counted: Tensor) -> Tensor:
    """Each row by its sum, which is below what its members count by the error of an estimate alone; or nothing."""
    return y / torch.maximum(total, LEAST * counted).masked_fill(counted == 0, 1.0)
