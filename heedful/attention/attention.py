"""Attention is three parts: project, weigh, join. Forty kinds of it differ in which parts they are given."""

from __future__ import annotations

from torch import Tensor, nn

from heedful.attention.context import Context
from heedful.attention.kv_cache import Memory
from heedful.attention.mechanism import Mechanism
from heedful.attention.projections import Across, Join, MultiHead
from heedful.attention.sight import Sight


class Attention(nn.Module):
    """Each query takes a weighted mean of the values; the weights say where it looked (Bahdanau et al., 2015)."""

    def __init__(self, project: MultiHead, mechanism: Mechanism, join: Join) -> None:
        super().__init__()
        self.project, self.mechanism, self.join = project, mechanism, join

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None) -> Tensor:  # B T M -> B T M
        q, k, v = self.project(x, sight)
        y = self.mechanism(q, k, v, sight) if memory is None else self.mechanism.recall(q, k, v, sight, memory)
        return self.join(y)

    def across(self, x: Tensor, other: Tensor, here: tuple[Sight, Sight], seen: Sight) -> Tensor:  # B T M
        """The same attention from x to another sequence; each sequence is projected by its own sight."""
        q = self.project(x, here[0])[0]
        _, k, v = self.project(other, here[1])
        return self.join(self.mechanism(q, k, v, seen))


class CrossAttention(nn.Module):
    """Queries of one sequence look at another: at each step of writing, the source is read again where it matters."""

    def __init__(self, project: Across, mechanism: Mechanism, join: Join) -> None:
        super().__init__()
        self.project, self.mechanism, self.join = project, mechanism, join

    def forward(self, x: Tensor, sight: Sight, context: Context) -> Tensor:  # B T M -> B T M
        q = self.project.queries(x, sight)
        k, v = context.answers(self.project, sight)
        return self.join(self.mechanism(q, k, v, sight))
