"""Attention of a grid with a learned number for each way from cell to cell, a layer's own."""

from __future__ import annotations

from torch import Tensor

from heedful.attention.attention import Attention
from heedful.attention.biases.beit_table import ClassTable
from heedful.attention.grid.grid_sight import GridSight
from heedful.attention.kv_cache import Memory
from heedful.attention.mechanism import Mechanism
from heedful.attention.projections import Join, MultiHead
from heedful.attention.sight import Sight
from heedful.errors import Refusal


class TableAttention(Attention):
    """A class token and the cells of a grid look at each other, by where they stand too (BEiT: Bao et al., 2022)."""

    def __init__(self, project: MultiHead, mechanism: Mechanism, join: Join, bias: ClassTable) -> None:
        super().__init__(project, mechanism, join)
        self.bias = bias

    def forward(self, x: Tensor, sight: Sight, memory: Memory | None = None) -> Tensor:  # B T M -> B T M
        if not isinstance(sight, GridSight) or sight.leading != 1:
            raise Refusal("ways from cell to cell want a grid with one token before it; use softmax")
        return super().forward(x, sight.plus(self.bias.sized(sight.shape)))
